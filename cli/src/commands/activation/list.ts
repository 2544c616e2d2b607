import { ownNamespace, parseQualifiedName } from '../../args/qualified-name.js';
import { valueOf } from '../../args/parameters.js';
import { wrapError } from '../../errors.js';
import { asNumber, asText, type JsonMap } from '../../json/json.js';
import { stdout } from '../../terminal.js';
import { checkArgs, pageFlags, type Command, type CommandContext } from '../command.js';
import { annotationsOf } from '../lists.js';
import { listActivations } from './activations.js';
import { formatDuration, formatLocalTime, shorten } from './format.js';

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
    start: (valueOf(annotations, 'initTime') ?? null) === null ? 'warm' : 'cold',
    duration: formatDuration(durationMs),
    status: statusWords[asNumber(activation.get('statusCode'))] ?? 'success',
    entity: `${namespace}/${name}:${shorten(asText(activation.get('version')), 20)}`,
  };
}

const since1970 = 'measured in milliseconds since Th, 01, Jan 1970';

/** `wsk activation list`. */
export const listCommand: Command = {
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
