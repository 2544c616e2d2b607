import { wrapError } from '../../errors.js';
import { stdout } from '../../terminal.js';
import { checkArgs, type CommandContext } from '../command.js';

/** `wsk gpu cordon|drain|uncordon`. */
export function setWish(wish: 'cordon' | 'drain' | 'uncordon'): (context: CommandContext) => Promise<void> {
  return async ({ args, client }) => {
    checkArgs(args, 1, 1, 'The UUID of a GPU is required.');
    const [uuid = ''] = args;
    try {
      await client.callRoute('PUT', `gpu/devices/${encodeURIComponent(uuid)}`, new Map([['wish', wish]]));
    } catch (error) {
      throw wrapError(error, `Unable to ${wish} GPU '${uuid}'`);
    }
    stdout.print(`${stdout.ok} ${wish} GPU ${uuid}\n`);
  };
}
