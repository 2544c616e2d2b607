// GPUs and the instances of functions on them: lists, the display of `top`, and changes of their state.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '../../client/client.js';
import { checkArgs, type CommandContext } from '../../command.js';
import { argumentError, messageOf, wrapError, WskError } from '../../errors.js';
import { asList, asMap, asText, type Json, type JsonMap } from '../../json/json.js';
import { stdout } from '../../terminal.js';
import { deviceTable, processRows, processTitles, table } from './format.js';

/** The devices of the cluster. @throws WskError */
async function readDevices(client: Client): Promise<JsonMap[]> {
  let devices: Json;
  try {
    devices = await client.callRoute('GET', 'gpu/devices');
  } catch (error) {
    throw wrapError(error, 'Unable to obtain the list of GPUs');
  }
  return asList(devices).map(asMap);
}

/** `wsk gpu devices`. */
export async function listDevices({ args, client }: CommandContext): Promise<void> {
  checkArgs(args, 0, 0, 'No arguments are required.');
  const { header, rows } = deviceTable(await readDevices(client), { tokens: false });
  stdout.print(stdout.bold(header) + rows.join(''));
}

const refreshMs = 1000;

/** `wsk gpu top`: prints once, or every second on a terminal. */
export async function top({ args, client, flags }: CommandContext): Promise<void> {
  checkArgs(args, 0, 0, 'No arguments are required.');
  const isWatched = process.stdout.isTTY === true && !flags.bool('once');
  const first = picture(await readDevices(client));
  if (isWatched) stdout.clear();
  stdout.print(first);
  if (!isWatched) return;
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(0));
  for (;;) {
    await sleep(refreshMs);
    try {
      const next = picture(await readDevices(client));
      stdout.clear();
      stdout.print(next);
    } catch (error) {
      // The server may come back; a wrong command line stays wrong.
      if (!(error instanceof WskError) || error.exitCode === 2) throw error;
      stdout.clear();
      stdout.print(`${messageOf(error)}\n`);
    }
  }
}

/** Devices, and below each its processes. */
function picture(devices: JsonMap[]): string {
  if (devices.length === 0) return 'There is no GPU.\n';
  const counted = (device: JsonMap): boolean =>
    asList(device.get('functions')).some((one) => asMap(one).has('launches'));
  const shown = {
    progress: devices.some((device) => asList(device.get('workloads')).length > 0),
    tokens: devices.some((device) => device.has('tokenState') || counted(device)),
  };
  const summary = deviceTable(devices, shown);
  const processes = devices.map((device) => processRows(device, shown));
  const { titles, right } = processTitles(shown);
  const details = table(titles, processes.flat(), right);
  let taken = 0;
  const blocks = devices.map((_, at) => {
    const count = processes[at]?.length ?? 0;
    const rows = details.rows.slice(taken, (taken += count));
    return (summary.rows[at] ?? '') + rows.map((row) => `    ${row}`).join('');
  });
  const head = processes.some((rows) => rows.length > 0) ? `${summary.header}    ${details.header}` : summary.header;
  return stdout.bold(head) + blocks.join('');
}

/** `wsk gpu cordon|drain|uncordon`. */
export function requestState(state: 'cordon' | 'drain' | 'uncordon'): (context: CommandContext) => Promise<void> {
  return async ({ args, client }) => {
    checkArgs(args, 1, 1, 'The UUID of a GPU is required.');
    const [uuid = ''] = args;
    try {
      await client.callRoute('PUT', `gpu/devices/${encodeURIComponent(uuid)}`, new Map([['wish', state]]));
    } catch (error) {
      throw wrapError(error, `Unable to ${state} GPU '${uuid}'`);
    }
    stdout.print(`${stdout.ok} ${state} GPU ${uuid}\n`);
  };
}

/** `wsk gpu cut`. */
export async function cutDevice({ args, client }: CommandContext): Promise<void> {
  checkArgs(args, 1, 2, 'The UUID of a GPU is required.');
  const [uuid = '', list = ''] = args;
  const profiles = list === '' ? [] : list.split(',');
  try {
    await client.callRoute('PUT', `gpu/devices/${encodeURIComponent(uuid)}/slices`, new Map([['profiles', profiles]]));
  } catch (error) {
    throw wrapError(error, `Unable to cut GPU '${uuid}'`);
  }
  const into = profiles.length === 0 ? 'is not to be cut' : `is to be cut into ${profiles.join(', ')}`;
  stdout.print(`${stdout.ok} GPU ${uuid} ${into}, once nothing runs on the slices that go\n`);
}

const instancesRoute = 'gpu/instances';

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
    const launched = asMap(await client.callRoute('POST', instancesRoute, body));
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
    await client.callRoute('DELETE', `${instancesRoute}/${encodeURIComponent(container)}${grace}`);
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
    await client.callRoute('PUT', `${instancesRoute}/${encodeURIComponent(container)}`, body);
    stdout.print(`${stdout.ok} instance ${container} is to have ${request} to ${limit} of its GPU\n`);
  } catch (error) {
    throw wrapError(error, `Unable to move the share of instance '${container}'`);
  }
}
