import { wrapError } from '../../errors.js';
import { stdout } from '../../terminal.js';
import { checkArgs, type CommandContext } from '../command.js';

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
