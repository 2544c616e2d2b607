import { parseQualifiedName } from '../../args/qualified-name.js';
import { wrapError } from '../../errors.js';
import { annotationFlags, checkArgs, parameterFlags, type Command, type CommandContext } from '../command.js';
import { body, printDone, targetOf } from '../entities.js';
import { keyValuesOf } from './create.js';
import { packages } from './packages.js';

async function bind({ args, client, flags, pairs }: CommandContext): Promise<void> {
  checkArgs(args, 2, 2, 'A package name and binding name are required.');
  const [packageName = '', bindingName = ''] = args;
  const provider = parseQualifiedName(packageName);
  const { namespace, route } = targetOf(packages, bindingName);
  const binding = body({ namespace: provider.namespace, name: provider.path });
  try {
    await client.put(
      namespace,
      `${route}?overwrite=${flags.bool('overwrite')}`,
      body({ ...keyValuesOf(pairs), binding }),
    );
  } catch (error) {
    throw wrapError(error, 'Binding creation failed');
  }
  printDone('created', 'binding', bindingName);
}

/** `wsk package bind`. */
export const bindCommand: Command = {
  name: 'bind',
  argsUsage: 'PACKAGE_NAME BOUND_PACKAGE_NAME',
  summary: 'bind parameters to a package',
  flags: [
    ...annotationFlags,
    { name: 'overwrite', short: 'o', type: 'bool', help: 'overwrite bind' },
    ...parameterFlags,
  ],
  run: bind,
};
