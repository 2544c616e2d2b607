import { argumentError, wrapError } from '../../errors.js';
import { asList, asMap, asText } from '../../json/json.js';
import type { Json, JsonMap } from '../../json/json.js';
import { stdout } from '../../terminal.js';
import { checkArgs, type CommandContext } from '../command.js';
import { table } from './format.js';
import { readDevices } from './gpus.js';

const route = 'gpu/instances';

/** `wsk gpu instances`. */
export async function listInstances({ args, client }: CommandContext): Promise<void> {
  checkArgs(args, 0, 0, 'No arguments are required.');
  const devices = await readDevices(client);
  const rows = devices.flatMap((device) =>
    asList(device.get('functions'))
      .map(asMap)
      .filter((one) => one.has('container'))
      .map((one) => [
        asText(one.get('container')),
        asText(one.get('action')) || '-',
        asText(one.get('slice')) || asText(device.get('uuid')),
        ...['share', 'memoryMiB', 'running'].map((field) => asText(one.get(field))),
      ]),
  );
  const titles = ['Container', 'Action', 'GPU', 'Share', 'MiB', 'Running'];
  const { header, rows: lines } = table(titles, rows, ['Share', 'MiB', 'Running']);
  stdout.print(stdout.bold(header) + lines.join(''));
}

/** `wsk gpu launch`. */
export async function launchInstance({ args, client, flags }: CommandContext): Promise<void> {
  checkArgs(args, 1, 1, 'An action name is required.');
  const [action = ''] = args;
  const body: JsonMap = new Map<string, Json>([['action', action]]);
  if (flags.given('on')) body.set('devices', flags.text('on').split(','));
  if (flags.given('percent')) body.set('mpsPercent', flags.int('percent'));
  try {
    const launched = asMap(await client.callRoute('POST', route, body));
    const place = asText(launched.get('slice')) || asText(launched.get('device'));
    if (place === '') stdout.print(`${stdout.ok} an instance of ${action} starts\n`);
    else stdout.print(`${stdout.ok} launched an instance of ${asText(launched.get('action'))} on ${place}\n`);
  } catch (error) {
    throw wrapError(error, `Unable to launch an instance of '${action}'`);
  }
}

/** `wsk gpu retire`. */
export async function retireInstance({ args, client, flags }: CommandContext): Promise<void> {
  checkArgs(args, 1, 1, 'The container of an instance is required.');
  const [container = ''] = args;
  try {
    const grace = flags.given('grace') ? `?graceMs=${flags.int('grace')}` : '';
    await client.callRoute('DELETE', `${route}/${encodeURIComponent(container)}${grace}`);
    const when = grace === '' ? 'once nothing runs in it' : `within ${flags.int('grace')} ms`;
    stdout.print(`${stdout.ok} instance ${container} ends ${when}\n`);
  } catch (error) {
    throw wrapError(error, `Unable to retire instance '${container}'`);
  }
}

/** `wsk gpu reshare`. */
export async function reshareInstance({ args, client, flags }: CommandContext): Promise<void> {
  checkArgs(args, 1, 1, 'The container of an instance is required.');
  const [container = ''] = args;
  if (!flags.given('limit')) throw argumentError('Invalid argument(s). --limit is required.');
  const limit = Number(flags.text('limit'));
  const request = flags.given('request') ? Number(flags.text('request')) : limit;
  if (!(limit > 0 && limit <= 1 && request > 0 && request <= limit)) {
    throw argumentError('Invalid argument(s). --request and --limit are fractions, 0 < request <= limit <= 1.');
  }
  const body: JsonMap = new Map<string, Json>([
    ['smRequest', request],
    ['smLimit', limit],
  ]);
  try {
    await client.callRoute('PUT', `${route}/${encodeURIComponent(container)}`, body);
    stdout.print(`${stdout.ok} instance ${container} is to have ${request} to ${limit} of its GPU\n`);
  } catch (error) {
    throw wrapError(error, `Unable to move the share of instance '${container}'`);
  }
}
