import { list, remove, targetOf } from '../entities.js';
import {
  annotationFlags,
  checkArgs,
  nameSortFlag,
  pageFlags,
  parameterFlags,
  type Command,
  type CommandContext,
} from '../command.js';
import type { FlagSpec } from '../../args/flags.js';
import { bindCommand } from './bind.js';
import { create, update } from './create.js';
import { getCommand } from './get.js';
import { packages } from './packages.js';
import { refreshCommand } from './refresh.js';

async function removePackage(context: CommandContext): Promise<void> {
  checkArgs(context.args, 1, 1, 'A package name is required.');
  await remove(context, packages, targetOf(packages, context.args[0] ?? ''));
}

const definitionFlags: FlagSpec[] = [
  ...annotationFlags,
  ...parameterFlags,
  { name: 'shared', type: 'string', help: 'package visibility `SCOPE`; yes = shared, no = private' },
];

/** `wsk package`. */
export const packageCommands: Command[] = [
  bindCommand,
  {
    name: 'create',
    argsUsage: 'PACKAGE_NAME',
    summary: 'create a new package',
    flags: definitionFlags,
    run: create,
  },
  {
    name: 'delete',
    argsUsage: 'PACKAGE_NAME',
    summary: 'delete package',
    flags: [],
    run: removePackage,
  },
  getCommand,
  {
    name: 'list',
    argsUsage: '[NAMESPACE]',
    summary: 'list all packages',
    flags: [...pageFlags('packages'), nameSortFlag],
    run: (context) => list(context, packages),
  },
  refreshCommand,
  {
    name: 'update',
    argsUsage: 'PACKAGE_NAME',
    summary: 'update an existing package, or create a package if it does not exist',
    flags: definitionFlags,
    run: update,
  },
];
