import { WskError } from '../../errors.js';
import { asMap, asNumber, asText, type Json, type JsonMap } from '../../json/json.js';
import { activationShape, conform, hasMember, memberOf } from '../../shapes.js';
import { stdout } from '../../terminal.js';
import type { Command, CommandContext } from '../command.js';
import { lastFlag, logLines, readActivation, stripStamp, withLastId } from './activations.js';
import { formatLocalTime } from './format.js';

/** Status codes by the words of `response.status`; records that are read alone carry no code. */
const statusCodes: Record<string, number> = {
  'application error': 1,
  'action developer error': 2,
  'whisk internal error': 3,
};

async function get(context: CommandContext): Promise<void> {
  const { flags, client } = context;
  const [id, field] = await withLastId(context, 'activation', 2);
  if (field !== undefined && !hasMember(activationShape, field)) throw new WskError(`Invalid field filter '${field}'.`);
  const activation = withStatusCode(await readActivation(client, id, 'activation'));
  if (flags.bool('summary')) {
    printSummary(activation);
  } else if (flags.bool('logs')) {
    stdout.print(
      logLines(activation)
        .map((line) => `${stripStamp(line)}\n`)
        .join(''),
    );
  } else if (field !== undefined) {
    stdout.print(`${stdout.ok} got activation ${stdout.bold(id)}, displaying field ${stdout.bold(field)}\n`);
    stdout.printJson(memberOf(activation, activationShape, field) ?? null);
  } else {
    stdout.print(`${stdout.ok} got activation ${stdout.bold(id)}\n`);
    stdout.printJson(activation);
  }
}

function withStatusCode(answer: Json): JsonMap {
  const activation = conform(answer, activationShape);
  const status = asText(asMap(activation.get('response')).get('status'));
  return activation.set('statusCode', statusCodes[status] ?? 0);
}

function printSummary(activation: JsonMap): void {
  const response = asMap(activation.get('response'));
  const name = `/${asText(activation.get('namespace'))}/${asText(activation.get('name'))}`;
  const endSecondMs = Math.floor(asNumber(activation.get('end')) / 1000) * 1000;
  const when = `${formatLocalTime(endSecondMs)} ${zoneOf(endSecondMs)}`;
  stdout.print(`activation result for '${name}' (${asText(response.get('status'))} at ${when})\n`);
  stdout.printJson(response.get('result') ?? null);
}

/** The local time zone, as `+0100 CET`. */
function zoneOf(timeMs: number): string {
  const time = new Date(timeMs);
  const offset = -time.getTimezoneOffset();
  const digits = [Math.floor(Math.abs(offset) / 60), Math.abs(offset) % 60]
    .map((n) => String(n).padStart(2, '0'))
    .join('');
  const parts = new Intl.DateTimeFormat('en', { timeZoneName: 'short' }).formatToParts(time);
  const zone = parts.find(({ type }) => type === 'timeZoneName')?.value ?? '';
  return `${offset < 0 ? '-' : '+'}${digits} ${zone}`.trim();
}

/** `wsk activation get`. */
export const getCommand: Command = {
  name: 'get',
  argsUsage: '(ACTIVATION_ID | --last) [FIELD_FILTER]',
  summary: 'get activation',
  flags: [
    lastFlag,
    {
      name: 'logs',
      short: 'g',
      type: 'bool',
      help: 'emit only the logs, stripped of time stamps and stream identifier',
    },
    { name: 'summary', short: 's', type: 'bool', help: 'summarize activation details' },
  ],
  run: get,
};
