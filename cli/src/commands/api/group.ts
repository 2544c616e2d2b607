import { stdout } from '../../terminal.js';
import { checkArgs, type Command, type CommandContext } from '../command.js';
import { checkPath, checkVerb } from './arguments.js';
import { createCommand } from './create.js';
import { apiError, callGateway } from './gateway.js';
import { getCommand } from './get.js';
import { listCommand } from './list.js';

async function remove({ args, client, settings }: CommandContext): Promise<void> {
  const optional = 'An optional API relative path and operation may also be provided.';
  checkArgs(args, 1, 3, `An API base path or API name is required.  ${optional}`);
  const [basepath = '', path, verb] = args;
  const relpath = path === undefined ? undefined : checkPath(path);
  const operation = verb === undefined ? undefined : checkVerb(verb);
  try {
    await callGateway(client, settings, 'DELETE', { basepath, relpath, operation });
  } catch (error) {
    throw apiError(error, 'Unable to delete API');
  }
  const part = [relpath, operation].filter((word) => word !== undefined).join(' ');
  stdout.print(`${stdout.ok} deleted ${part === '' ? `API ${basepath}` : `${part} from ${basepath}`}\n`);
}

/** `wsk api`. */
export const apiCommands: Command[] = [
  createCommand,
  {
    name: 'delete',
    argsUsage: 'BASE_PATH | API_NAME [API_PATH [API_VERB]]',
    summary: 'delete an API',
    flags: [],
    run: remove,
  },
  getCommand,
  listCommand,
];
