// Models of functions: loaded ahead of requests, shown and unloaded.
import { checkArgs, type CommandContext } from '../../command.js';
import { argumentError, wrapError } from '../../errors.js';
import { asList, asMap, asNumber, asText, type JsonMap } from '../../json/json.js';
import { stdout } from '../../terminal.js';
import { table } from './format.js';

const methods = { load: 'POST', delete: 'DELETE', status: 'GET' } as const;

/** `wsk gpu model load|delete|status ACTION`. */
export async function model({ args: [verb = '', ...args], client, flags }: CommandContext): Promise<void> {
  if (verb !== 'load' && verb !== 'delete' && verb !== 'status') {
    throw argumentError('Invalid argument(s). One of load, delete and status is required.');
  }
  checkArgs(args, 1, 1, 'An action name is required.');
  const [name = ''] = args;
  const grace = verb === 'delete' && flags.given('grace') ? `?graceMs=${flags.int('grace')}` : '';
  const route = `gpu/functions/${encodeURIComponent(name)}/model${grace}`;
  let shown: JsonMap;
  try {
    shown = asMap(await client.callRoute(methods[verb], route));
  } catch (error) {
    throw wrapError(error, `Unable to ${verb === 'status' ? 'obtain' : verb} the model of '${name}'`);
  }
  if (verb === 'load') stdout.print(loadedLine(shown));
  else if (verb === 'delete') stdout.print(deletedLines(shown));
  else stdout.print(status(shown));
}

const instancesIn = (shown: JsonMap): JsonMap[] => asList(shown.get('instances')).map(asMap);
const placeOf = (instance: JsonMap): string => asList(instance.get('gpus')).map(asText).join(',');

function loadedLine(shown: JsonMap): string {
  const action = asText(shown.get('action'));
  if (asText(shown.get('state')) !== 'loaded') return `${stdout.ok} ${action} is being loaded\n`;
  const places = instancesIn(shown)
    .filter((one) => ['idle', 'running'].includes(asText(one.get('state'))))
    .map(placeOf);
  return `${stdout.ok} ${action} is loaded on ${[...new Set(places)].join(' ')}\n`;
}

function deletedLines(shown: JsonMap): string {
  const action = asText(shown.get('action'));
  const states = instancesIn(shown).map((one) => asText(one.get('state')));
  const starting = states.filter((state) => state !== 'draining').length;
  const ending = states.length - starting;
  const first =
    ending === 0
      ? `${stdout.ok} no instance of ${action} is loaded\n`
      : `${stdout.ok} instances of ${action} that end once nothing runs in them: ${ending}\n`;
  return starting === 0 ? first : `${first}instances that have yet to start, delete again: ${starting}\n`;
}

const timeText = (shown: JsonMap, field: string): string =>
  shown.has(field) ? new Date(asNumber(shown.get(field))).toISOString() : '-';

function status(shown: JsonMap): string {
  const summary = ['action', 'version', 'state'].map((field) => asText(shown.get(field))).join(' ');
  const head = stdout.bold(`${summary}, ${asText(shown.get('waiting'))} waiting\n`);
  const instances = instancesIn(shown);
  if (instances.length === 0) return head;
  const text = (one: JsonMap, field: string): string => asText(one.get(field)) || '-';
  const rows = instances.map((one) => [
    ...['container', 'version', 'state'].map((field) => text(one, field)),
    placeOf(one),
    ...['share', 'memoryMiB', 'heldMiB', 'running'].map((field) => text(one, field)),
    timeText(one, 'since'),
    asText(one.get('state')) === 'running' ? 'now' : timeText(one, 'idleSince'),
  ]);
  const right = ['Share', 'MiB', 'Holds', 'Running'];
  const titles = ['Container', 'Version', 'State', 'GPU', ...right, 'Since', 'Last use'];
  const { header, rows: lines } = table(titles, rows, right);
  return head + header + lines.join('');
}
