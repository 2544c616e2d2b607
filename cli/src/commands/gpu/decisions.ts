// Decisions of the GPU scheduler: the queue, and reasons of placements.
import { checkArgs, type CommandContext } from '../../command.js';
import { wrapError, WskError } from '../../errors.js';
import { writeNewFile } from '../../files.js';
import { asList, asMap, asNumber, asText, stringify, type Json, type JsonMap } from '../../json/json.js';
import { stdout } from '../../terminal.js';
import { withLastId } from '../activation/activations.js';
import { percent, table } from './format.js';

/** `wsk gpu explain`: prints the decision about an activation, writes the present view into a file, or both. */
export async function explain(context: CommandContext): Promise<void> {
  const { args, flags } = context;
  const savesView = flags.given('view');
  if (args.length > 0 || flags.bool('last') || !savesView) {
    const [id] = await withLastId(context, 'activation');
    await explainActivation(context, id);
  }
  if (savesView) await saveView(context, flags.text('view'));
}

async function explainActivation({ client }: CommandContext, id: string): Promise<void> {
  let explained: JsonMap;
  try {
    explained = asMap(await client.callRoute('GET', `gpu/explanations/${encodeURIComponent(id)}`));
  } catch (error) {
    throw wrapError(error, `Unable to explain activation '${id}'`);
  }
  const found = asList(explained.get('decisions')).map(asMap);
  if (!explained.has('sentence')) throw new WskError(`No decision about activation '${id}' is known.`);
  stdout.print(`${stdout.bold(asText(explained.get('sentence')))}\n`);
  // The answer lists the last decision first.
  stdout.print(found.reverse().map(describe).join(''));
}

async function saveView({ client }: CommandContext, file: string): Promise<void> {
  let view: Json;
  try {
    view = await client.callRoute('GET', 'gpu/view');
  } catch (error) {
    throw wrapError(error, 'Unable to save the view of the GPUs');
  }
  writeNewFile(file, Buffer.from(`${stringify(view, 2)}\n`));
  stdout.print(`ok: saved the view of the GPUs in ${file}\n`);
}

function describe(decision: JsonMap): string {
  const at = new Date(asNumber(decision.get('at'))).toISOString();
  const placement = decision.get('placement');
  const head = `${at}  ${asText(decision.get('policy'))}: ${asText(decision.get('reason'))}`;
  const where = placement === undefined ? '' : `  ${placed(asMap(placement))}`;
  const rejected = asList(decision.get('rejected')).map((one) => `    ${rejection(asMap(one))}\n`);
  return `${head}${where}\n${rejected.join('')}`;
}

function placed(placement: JsonMap): string {
  const devices = asList(placement.get('devices')).map(asText).join(', ');
  const share = asMap(placement.get('share'));
  return `${asText(placement.get('slice') ?? devices)} at ${percent(asNumber(share.get('shareClass')) / 100)}`;
}

function rejection(one: JsonMap): string {
  const told = (value: Json): number => Math.round(asNumber(value) * 1000) / 1000;
  const numbers = [...asMap(one.get('numbers'))].map(([name, value]) => `${name} ${told(value)}`).join(', ');
  return `not ${asText(one.get('what'))}: ${asText(one.get('reason'))}${numbers === '' ? '' : ` (${numbers})`}`;
}

const queueTitles = ['#', 'Activation', 'Action', 'Waited ms', 'SLO ms', 'MiB', 'GPUs'];
const queueNumbers = ['#', 'Waited ms', 'SLO ms', 'MiB', 'GPUs'];

/** `wsk gpu queue`. */
export async function listQueue({ args, client }: CommandContext): Promise<void> {
  checkArgs(args, 0, 0, 'No arguments are required.');
  let queued: Json;
  try {
    queued = await client.callRoute('GET', 'gpu/queue');
  } catch (error) {
    throw wrapError(error, 'Unable to obtain the queue for GPUs');
  }
  const rows = asList(queued)
    .map(asMap)
    .map((one) => {
      const slo = one.get('sloMs');
      return [
        String(asNumber(one.get('position'))),
        asText(one.get('activationId')),
        asText(one.get('action')),
        String(asNumber(one.get('waitedMs'))),
        slo === undefined ? '-' : String(asNumber(slo)),
        String(asNumber(one.get('memoryMiB'))),
        String(asNumber(one.get('gpus'))),
      ];
    });
  const { header, rows: lines } = table(queueTitles, rows, queueNumbers);
  stdout.print(stdout.bold(header) + lines.join(''));
}
