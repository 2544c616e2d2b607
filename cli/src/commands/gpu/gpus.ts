import type { Client } from '../../client/client.js';
import { wrapError } from '../../errors.js';
import { asList, asMap, type Json, type JsonMap } from '../../json/json.js';
import { stdout } from '../../terminal.js';
import { checkArgs, type CommandContext } from '../command.js';
import { deviceTable } from './format.js';

/** The devices of the cluster. @throws WskError */
export async function readDevices(client: Client): Promise<JsonMap[]> {
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
  const { header, rows } = deviceTable(await readDevices(client));
  stdout.print(stdout.bold(header) + rows.join(''));
}
