// Nodes with GPUs, their announced ends, and what they cost.
import { checkArgs, type CommandContext } from '../../command.js';
import { argumentError, wrapError } from '../../errors.js';
import { asList, asMap, asNumber, asText, type Json, type JsonMap } from '../../json/json.js';
import { stdout } from '../../terminal.js';
import { table } from './format.js';

function print(titles: string[], rows: string[][], right: readonly string[]): void {
  const { header, rows: lines } = table(titles, rows, right);
  stdout.print(stdout.bold(header) + lines.join(''));
}

/** A price or cost with four digits after the point; `-` if it is not known. */
const money = (value: Json | undefined): string => (value === undefined ? '-' : asNumber(value).toFixed(4));
const orDash = (value: Json | undefined): string => asText(value) || '-';

function stateOf(node: JsonMap): string {
  const state = asText(node.get('state'));
  return node.has('leavesAt') ? `${state} at ${new Date(asNumber(node.get('leavesAt'))).toISOString()}` : state;
}

/** `wsk gpu nodes`. */
export async function listNodes({ args, client }: CommandContext): Promise<void> {
  checkArgs(args, 0, 0, 'No arguments are required.');
  let answer: JsonMap;
  try {
    answer = asMap(await client.callRoute('GET', 'gpu/nodes'));
  } catch (error) {
    throw wrapError(error, 'Unable to obtain the list of nodes');
  }
  const rows = asList(answer.get('nodes'))
    .map(asMap)
    .map((node) => [
      orDash(node.get('invoker')),
      orDash(node.get('market')),
      money(node.get('pricePerHour')),
      String(asList(node.get('devices')).length),
      String(asNumber(node.get('running'))),
      orDash(node.get('machine')),
      stateOf(node),
    ]);
  print(['Invoker', 'Market', 'Price/h', 'GPUs', 'Running', 'Machine', 'State'], rows, ['Price/h', 'GPUs', 'Running']);
  if (answer.has('wanted')) stdout.print(`\n${asNumber(answer.get('wanted'))} rented nodes are wanted\n`);
}

/** `wsk gpu rent`. */
export async function rentNodes({ args, client }: CommandContext): Promise<void> {
  checkArgs(args, 1, 1, 'The number of rented nodes is required.');
  const [text = ''] = args;
  if (!/^\d{1,5}$/.test(text)) throw argumentError(`Invalid argument(s). '${text}' is no number of nodes.`);
  try {
    await client.callRoute('PUT', 'gpu/nodes', new Map([['wanted', Number(text)]]));
  } catch (error) {
    throw wrapError(error, 'Unable to set the number of rented nodes');
  }
  stdout.print(`${stdout.ok} ${text} rented nodes are wanted\n`);
}

/** `wsk gpu notice`. */
export async function noticeNode({ args, client, flags }: CommandContext): Promise<void> {
  checkArgs(args, 1, 1, 'The invoker of a node is required.');
  const [invoker = ''] = args;
  if (flags.given('in') === flags.bool('withdraw')) {
    throw argumentError('Invalid argument(s). Either --in or --withdraw is required.');
  }
  const route = `gpu/nodes/${encodeURIComponent(invoker)}/notice`;
  try {
    if (flags.bool('withdraw')) await client.callRoute('DELETE', route);
    else await client.callRoute('PUT', route, new Map([['inS', flags.int('in')]]));
  } catch (error) {
    throw wrapError(error, `Unable to set the notice of '${invoker}'`);
  }
  const told = flags.bool('withdraw') ? 'has no notice' : `leaves in ${flags.int('in')} s`;
  stdout.print(`${stdout.ok} ${invoker} ${told}\n`);
}

/** `wsk gpu cost`. */
export async function showCost({ args, client, flags }: CommandContext): Promise<void> {
  checkArgs(args, 0, 0, 'No arguments are required.');
  const query = flags.given('days') ? `days=${flags.int('days')}` : '';
  try {
    if (flags.bool('csv')) {
      stdout.print(await client.readRoute(`gpu/cost?format=csv${query && `&${query}`}`));
      return;
    }
    printCost(asMap(await client.callRoute('GET', `gpu/cost${query && `?${query}`}`)));
  } catch (error) {
    throw wrapError(error, 'Unable to obtain the costs');
  }
}

function printCost(answer: JsonMap): void {
  const functions = asList(answer.get('functions')).map(asMap);
  const rows = functions.map((one) => [
    asText(one.get('namespace')),
    asText(one.get('action')),
    asNumber(one.get('gpuSeconds')).toFixed(1),
    money(one.get('cost')),
  ]);
  stdout.print(`${asText(answer.get('from'))} to ${asText(answer.get('to'))} (UTC)\n`);
  print(['Namespace', 'Action', 'GPU-seconds', 'Cost'], rows, ['GPU-seconds', 'Cost']);
  const markets = asList(answer.get('markets')).map(asMap);
  if (markets.length > 0) {
    stdout.print('\n');
    const cells = markets.map((one) => [
      asText(one.get('market')),
      asNumber(one.get('hours')).toFixed(2),
      ...['cost', 'idle', 'boot'].map((part) => money(one.get(part))),
    ]);
    const titles = ['Market', 'Hours', 'Cost', 'Idle', 'Boot'];
    print(titles, cells, titles.slice(1));
  }
  stdout.print(`\nTotal: ${money(answer.get('total'))}\n`);
}
