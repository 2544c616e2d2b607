import { mergeObjects, toKeyValues } from '../../args/parameters.js';
import type { Pairs } from '../../args/pairs.js';
import { argumentError, wrapError } from '../../errors.js';
import type { JsonMap } from '../../json/json.js';
import { checkArgs, type CommandContext } from '../command.js';
import { body, printDone, targetOf } from '../entities.js';
import { packages } from './packages.js';

/** `wsk package create`. */
export function create(context: CommandContext): Promise<void> {
  return put(context, false, 'created', (name) => `Unable to create package '${name}'`);
}

/** `wsk package update`. */
export function update(context: CommandContext): Promise<void> {
  return put(context, true, 'updated', () => 'Package update failed');
}

async function put(
  { args, client, flags, pairs }: CommandContext,
  overwrite: boolean,
  done: string,
  failure: (name: string) => string,
): Promise<void> {
  checkArgs(args, 1, 1, 'A package name is required.');
  const { namespace, name, route } = targetOf(packages, args[0] ?? '');
  const publish = isShared(flags.text('shared'));
  const definition = body({ namespace, name, publish, ...keyValuesOf(pairs) });
  try {
    await client.put(namespace, `${route}?overwrite=${overwrite}`, definition);
  } catch (error) {
    throw wrapError(error, failure(name));
  }
  printDone(done, 'package', name);
}

/** Annotations and parameters of the command line, as request bodies of packages and bindings have them. */
export function keyValuesOf(pairs: Pairs): { annotations: JsonMap[]; parameters: JsonMap[] } {
  const parameters = toKeyValues(mergeObjects(pairs.parameters, 'parameter'));
  return { annotations: toKeyValues(mergeObjects(pairs.annotations, 'annotation')), parameters };
}

function isShared(scope: string): boolean | undefined {
  if (scope === '') return undefined;
  if (!['yes', 'no'].includes(scope.toLowerCase())) throw argumentError(`Cannot use value '${scope}' for shared.`);
  return scope.toLowerCase() === 'yes';
}
