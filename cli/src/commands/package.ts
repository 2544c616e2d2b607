import type { FlagSpec } from '../args/flags.js';
import { mergeObjects, toKeyValues, type Pairs } from '../args/parameters.js';
import { parseQualifiedName } from '../args/qualified-name.js';
import {
  annotationFlags,
  checkArgs,
  nameSortFlag,
  pageFlags,
  parameterFlags,
  type Command,
  type CommandContext,
} from '../command.js';
import { argumentError, exitCodes, wrapError, WskError } from '../errors.js';
import { asList, asMap, asText, body, type JsonMap } from '../json/json.js';
import { packageShape } from '../shapes.js';
import { stdout } from '../terminal.js';
import {
  list,
  listFormats,
  namespaceArgument,
  printDone,
  printEntity,
  read,
  remove,
  summaryFlag,
  summaryOf,
  targetOf,
  targetWithField,
  textOf,
  type EntityKind,
} from './entities.js';

/** Properties of packages, for the commands that all kinds of entities share. */
const packages: EntityKind = {
  noun: 'package',
  collection: 'packages',
  shape: packageShape,
  format: listFormats.packages,
};

/** `wsk package create`. */
function create(context: CommandContext): Promise<void> {
  return put(context, false, 'created', (name) => `Unable to create package '${name}'`);
}

/** `wsk package update`. */
function update(context: CommandContext): Promise<void> {
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

/** Annotations and parameters of the command line, in the format of the request bodies of packages and bindings. */
function keyValuesOf(pairs: Pairs): { annotations: JsonMap[]; parameters: JsonMap[] } {
  const parameters = toKeyValues(mergeObjects(pairs.parameters, 'parameter'));
  return { annotations: toKeyValues(mergeObjects(pairs.annotations, 'annotation')), parameters };
}

function isShared(scope: string): boolean | undefined {
  if (scope === '') return undefined;
  if (!['yes', 'no'].includes(scope.toLowerCase())) throw argumentError(`Cannot use value '${scope}' for shared.`);
  return scope.toLowerCase() === 'yes';
}

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
const bindCommand: Command = {
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

const notImplemented = 501 - 256;

async function refresh(context: CommandContext): Promise<void> {
  const namespace = namespaceArgument(context);
  let changes: JsonMap;
  try {
    changes = asMap(await context.client.post(namespace, 'packages/refresh'));
  } catch (error) {
    if (error instanceof WskError && error.exitCode === notImplemented) {
      const message = 'The package refresh feature is not implemented in the target deployment';
      throw new WskError(message, { exitCode: exitCodes.network });
    }
    throw wrapError(error, `Package refresh for namespace '${namespace}' failed`);
  }
  const lines = (title: string, member: string): string[] => [title, ...asList(changes.get(member)).map(asText)];
  const report = [
    `'${namespace}' refreshed successfully`,
    ...lines('created bindings:', 'added'),
    ...lines('updated bindings:', 'updated'),
    ...lines('deleted bindings:', 'deleted'),
  ];
  stdout.print(report.map((line) => `${line}\n`).join(''));
}

/** `wsk package refresh`. */
const refreshCommand: Command = {
  name: 'refresh',
  argsUsage: '[NAMESPACE]',
  summary: 'refresh package bindings',
  flags: [],
  run: refresh,
};

async function get(context: CommandContext): Promise<void> {
  const { target, field } = targetWithField(context, packages);
  const entity = await read(context, packages, target);
  if (context.flags.bool('summary')) stdout.print(summary(entity));
  else printEntity(packages, target, entity, field);
}

/** The package, its actions and its feeds, two lines each. */
function summary(entity: JsonMap): string {
  const name = `/${textOf(entity, 'namespace')}/${textOf(entity, 'name')}`;
  const inside = (kind: string, members: string): string[] =>
    asList(entity.get(members))
      .map(asMap)
      .map((member) => summaryOf(kind, member, `${name}/${textOf(member, 'name')}`));
  return [summaryOf('package', entity, name), ...inside(' action', 'actions'), ...inside(' feed  ', 'feeds')].join('');
}

/** `wsk package get`. */
const getCommand: Command = {
  name: 'get',
  argsUsage: 'PACKAGE_NAME [FIELD_FILTER]',
  summary: 'get package',
  flags: [summaryFlag('package', '; parameters with prefix "*" are bound')],
  run: get,
};

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
