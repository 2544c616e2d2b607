import { annotationsOf, valueOf } from '../../args/parameters.js';
import { ownNamespace, parseQualifiedName } from '../../args/qualified-name.js';
import { checkArgs, pageFlags, type Command, type CommandContext } from '../../command.js';
import { wrapError, WskError } from '../../errors.js';
import { asMap, asNumber, asText, sortKeys, type Json, type JsonMap } from '../../json/json.js';
import { activationShape, conform, hasMember, memberOf } from '../../shapes.js';
import { stdout } from '../../terminal.js';
import {
  formatDuration,
  formatLocalTime,
  lastFlag,
  listActivations,
  logLines,
  readActivation,
  shorten,
  stripStamp,
  withLastId,
} from './activations.js';
import { followLogs } from './follow.js';
import { pollCommand } from './poll.js';

const statusWords = ['success', 'application error', 'developer error', 'internal error'];

async function list({ args, client, flags }: CommandContext): Promise<void> {
  checkArgs(args, 0, 1, 'An optional namespace is the only valid argument.');
  const name = args[0] === undefined ? { namespace: ownNamespace, path: '' } : parseQualifiedName(args[0]);
  const docs = flags.bool('full');
  let activations: JsonMap[];
  try {
    activations = await listActivations(client, {
      name: name.path,
      limit: flags.int('limit'),
      skip: flags.int('skip'),
      since: flags.int('since'),
      upto: flags.int('upto'),
      docs,
    });
  } catch (error) {
    throw wrapError(error, "Unable to obtain the list of activations for namespace 'default'");
  }
  if (docs) {
    stdout.print(`${stdout.bold('activations')}\n`);
    activations.forEach((activation) => stdout.printJson(activation));
  } else {
    stdout.print(table(activations));
  }
}

function table(activations: JsonMap[]): string {
  if (activations.length === 0) return '\n';
  const rows = activations.map(rowOf);
  const kindWidth = Math.max('Kind'.length, ...rows.map(({ kind }) => kind.length));
  const statusWidth = Math.max('success'.length, ...rows.map(({ status }) => status.length));
  const header = `${'Datetime'.padEnd(19)} ${'Activation ID'.padEnd(32)} ${'Kind'.padEnd(kindWidth)} ${'Start'.padEnd(6)}${'Duration'.padEnd(10)} ${'Status'.padEnd(statusWidth)} Entity\n`;
  const lines = rows.map(
    ({ time, id, kind, start, duration, status, entity }) =>
      `${time} ${id.padEnd(32)} ${kind.padEnd(kindWidth)} ${start.padEnd(5)} ${duration.padEnd(10)} ${status.padEnd(statusWidth)} ${entity}\n`,
  );
  return stdout.bold(header) + lines.join('');
}

function rowOf(
  activation: JsonMap,
): Record<'time' | 'id' | 'kind' | 'start' | 'duration' | 'status' | 'entity', string> {
  const annotations = annotationsOf(activation);
  const startMs = asNumber(activation.get('start'));
  const durationMs = asNumber(activation.get('duration')) === 0 ? 0 : asNumber(activation.get('end')) - startMs;
  const namespace = shorten(asText(activation.get('namespace')), 20);
  const name = shorten(asText(activation.get('name')), 30);
  return {
    time: formatLocalTime(startMs),
    id: asText(activation.get('activationId')),
    kind: asText(valueOf(annotations, 'kind')) || 'unknown',
    start: startOf(annotations),
    duration: formatDuration(durationMs),
    status: wasStopped(annotations) ? 'stopped' : (statusWords[asNumber(activation.get('statusCode'))] ?? 'success'),
    entity: `${namespace}/${name}:${shorten(asText(activation.get('version')), 20)}`,
  };
}

/** Whether it was the run of a training job that ended because it was asked to. */
function wasStopped(annotations: JsonMap[]): boolean {
  const training = valueOf(annotations, 'training');
  return training instanceof Map && training.get('end') === 'stopped';
}

/** State of the container; `-` for an activation without a container, such as a trigger's. */
function startOf(annotations: JsonMap[]): string {
  if ((valueOf(annotations, 'initTime') ?? null) !== null) return 'cold';
  const kind = valueOf(annotations, 'kind') ?? 'sequence';
  return kind === 'sequence' || valueOf(annotations, 'start') === 'none' ? '-' : 'warm';
}

const since1970 = 'measured in milliseconds since Th, 01, Jan 1970';

/** `wsk activation list`. */
const listCommand: Command = {
  name: 'list',
  argsUsage: '[NAMESPACE or NAME]',
  summary: 'list activations',
  flags: [
    { name: 'full', short: 'f', type: 'bool', help: 'include full activation description' },
    ...pageFlags('activations', ' with a maximum LIMIT of 200 activations'),
    { name: 'since', type: 'int', help: `return activations with timestamps later than \`SINCE\`; ${since1970}` },
    { name: 'upto', type: 'int', help: `return activations with timestamps earlier than \`UPTO\`; ${since1970}` },
  ],
  run: list,
};

/** Status codes by the words of `response.status`; records that are read one at a time have no code. */
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
  const status = wasStopped(annotationsOf(activation)) ? 'stopped' : asText(response.get('status'));
  stdout.print(`activation result for '${name}' (${status} at ${when})\n`);
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
const getCommand: Command = {
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

async function logs(context: CommandContext): Promise<void> {
  const what = 'logs for activation';
  const [id] = await withLastId(context, what);
  const strip = context.flags.bool('strip');
  if (context.flags.bool('follow')) {
    return followLogs(context.client, id, (line) => stdout.print(`${strip ? stripStamp(line) : line}\n`));
  }
  const answer = await readActivation(context.client, id, what, '/logs');
  stdout.print(
    logLines(answer)
      .map((line) => `${strip ? stripStamp(line) : line}\n`)
      .join(''),
  );
}

/** `wsk activation logs`. */
const logsCommand: Command = {
  name: 'logs',
  argsUsage: '(ACTIVATION_ID | --last)',
  summary: 'get the logs of an activation',
  flags: [
    {
      name: 'follow',
      short: 'f',
      type: 'bool',
      help: 'print the lines as they are written, until the activation ends',
    },
    lastFlag,
    { name: 'strip', short: 'r', type: 'bool', help: 'strip timestamp and stream information' },
  ],
  run: logs,
};

async function result(context: CommandContext): Promise<void> {
  const what = 'result for activation';
  const [id] = await withLastId(context, what);
  const answer = await readActivation(context.client, id, what, '/result');
  stdout.printJson(sortKeys(asMap(answer).get('result') ?? null));
}

/** `wsk activation result`. */
const resultCommand: Command = {
  name: 'result',
  argsUsage: '(ACTIVATION_ID | --last)',
  summary: 'get the result of an activation',
  flags: [lastFlag],
  run: result,
};

/** `wsk activation`. */
export const activationCommands: Command[] = [getCommand, listCommand, logsCommand, pollCommand, resultCommand];
