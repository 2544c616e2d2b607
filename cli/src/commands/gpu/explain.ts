import { WskError, wrapError } from '../../errors.js';
import { asList, asMap, asNumber, asText, type Json, type JsonMap } from '../../json/json.js';
import { stdout } from '../../terminal.js';
import { checkArgs, type CommandContext } from '../command.js';
import { percent } from './format.js';

/** `wsk gpu explain`. */
export async function explain({ args, client }: CommandContext): Promise<void> {
  checkArgs(args, 1, 1, 'An activation ID is required.');
  const [id = ''] = args;
  let decisions: Json;
  try {
    decisions = await client.callRoute('GET', `gpu/decisions?activation=${encodeURIComponent(id)}`);
  } catch (error) {
    throw wrapError(error, `Unable to explain activation '${id}'`);
  }
  const found = asList(decisions).map(asMap);
  if (found.length === 0) throw new WskError(`No decision about activation '${id}' is known.`);
  // They come the last one first.
  stdout.print(found.reverse().map(describe).join(''));
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
