import { randomBytes } from 'node:crypto';
import type { Flags, FlagSpec } from '../../args/flags.js';
import { keyValue, valueOf, mergeObjects, toKeyValues } from '../../args/parameters.js';
import { usageError, exitCodes, messageOf, wrapError, WskError } from '../../errors.js';
import { asList, asMap, asNumber, asText, NumberLiteral, type Json, type JsonMap } from '../../json/json.js';
import { fullyQualified, parseQualifiedName } from '../../args/qualified-name.js';
import { encodePath } from '../../client/transport.js';
import { extensionForFamily, familyForExtension, isBinaryExtension } from '../../project/runtimes.js';
import { annotationFlags, checkArgs, parameterFlags, type Command, type CommandContext } from '../../command.js';
import { readUserFile, sizeOf } from '../../files.js';
import { actionShape, conform } from '../../shapes.js';
import { stdout } from '../../terminal.js';

const webKeys = ['web-export', 'raw-http', 'final'];
const secretKey = 'require-whisk-auth';

/** The three web annotations for each value of `--web`. */
const webModes: Record<string, boolean[]> = {
  yes: [true, false, true],
  true: [true, false, true],
  raw: [true, true, true],
  no: [false, false, false],
  false: [false, false, false],
};

/**
 * Adds the annotations of `--web` and `--web-secure` to `action`. On an update (`existing`) new annotations replace the
 * old ones as a whole, so old ones that must stay are repeated. If the command line gives annotations, only old ones
 * about the web are repeated, else all.
 */
function withWebAnnotations(action: JsonMap, existing: JsonMap | undefined, flags: Flags): JsonMap {
  const result: JsonMap = new Map(action);
  const old = listOf(existing);
  if (flags.given('web')) {
    const values = webModes[flags.text('web').toLowerCase()];
    if (!values) throw invalidMode(flags.text('web'));
    const base = action.has('annotations') ? listOf(action) : old;
    const web = webKeys.map((key, index) => keyValue(key, values[index] ?? false));
    const others = base.filter((item) => !webKeys.includes(keyOf(item)));
    result.set(
      'annotations',
      merged(
        [...others, ...web],
        old.filter((item) => keyOf(item) === secretKey),
      ),
    );
  }
  if (flags.given('web-secure')) setSecret(result, existing, flags);
  return result;
}

function setSecret(action: JsonMap, existing: JsonMap | undefined, flags: Flags): void {
  const turnsOff = ['no', 'false'].includes(flags.text('web').toLowerCase());
  const wasWeb = existing !== undefined && valueOf(listOf(existing), 'web-export') === true;
  if (valueOf(listOf(action), 'web-export') !== true && !(wasWeb && !turnsOff)) {
    throw usageError('The --web-secure option is only valid when the --web option is enabled.');
  }
  const kept = listOf(existing).filter(
    (item) => !action.has('annotations') || [...webKeys, secretKey].includes(keyOf(item)),
  );
  const annotations = merged(listOf(action), kept);
  const before = valueOf(annotations, secretKey);
  const secret = secretFor(flags.text('web-secure'));
  const others = annotations.filter((item) => keyOf(item) !== secretKey);
  const isNumber = (value: Json | undefined): boolean => value instanceof NumberLiteral || typeof value === 'number';
  if (before !== undefined && before !== null && secret === false) {
    action.set('delAnnotations', [secretKey]);
    action.set('annotations', others);
  } else if (isNumber(before) && isNumber(secret)) {
    action.set('annotations', annotations); // a generated secret stays as it is
  } else {
    action.set('annotations', replaced(annotations, secretKey, secret));
  }
}

/** `true` generates a secret below 2^53, so that every JSON reader keeps its digits; other words are the secret. */
function secretFor(mode: string): Json {
  if (mode.toLowerCase() === 'false') return false;
  if (mode.toLowerCase() !== 'true') return mode;
  return Number(randomBytes(8).readBigUInt64LE() >> 11n);
}

function replaced(annotations: JsonMap[], key: string, value: Json): JsonMap[] {
  if (!annotations.some((item) => keyOf(item) === key)) return [...annotations, keyValue(key, value)];
  return annotations.map((item) => (keyOf(item) === key ? keyValue(key, value) : item));
}

/** `annotations`, and those of `more` with other keys. */
function merged(annotations: JsonMap[], more: JsonMap[]): JsonMap[] {
  return [...annotations, ...more.filter((item) => !annotations.some((other) => keyOf(other) === keyOf(item)))];
}

function keyOf(item: JsonMap): string {
  return asText(item.get('key'));
}

function listOf(action: JsonMap | undefined): JsonMap[] {
  return asList(action?.get('annotations')).map(asMap);
}

function invalidMode(mode: string): Error {
  return usageError(
    `Invalid argument '${mode}' for --web flag. Valid input consist of 'yes', 'true', 'raw', 'false', or 'no'.`,
  );
}

const notFound = 404 - 256;
const tooLarge = 413 - 256;
/** Files of fewer bytes are sent without asking for the limit first. */
const askedFromBytes = 4 * 1024 * 1024;

async function create(context: CommandContext): Promise<void> {
  checkArgs(context.args, 1, 2, 'An action name and code artifact are required.');
  await put(context, false);
  stdout.print(`${stdout.ok} created action ${stdout.bold(nameOf(context))}\n`);
}

async function update(context: CommandContext): Promise<void> {
  checkArgs(context.args, 1, 2, 'An action name is required. A code artifact is optional.');
  await put(context, true);
  stdout.print(`${stdout.ok} updated action ${stdout.bold(nameOf(context))}\n`);
}

function nameOf({ args }: CommandContext): string {
  return parseQualifiedName(args[0] ?? '').path;
}

async function put(context: CommandContext, overwrite: boolean): Promise<void> {
  const { namespace, path } = await asArgument(async () => parseQualifiedName(context.args[0] ?? ''));
  await checkSize(context, namespace, path);
  const action = await asArgument(async () => {
    const parsed = await definitionFrom(context, overwrite);
    const existing = overwrite ? await existingAction(context, namespace, path) : undefined;
    return withWebAnnotations(parsed, existing, context.flags);
  });
  const body = new Map<string, Json>([['namespace', namespace], ['name', path], ...action]);
  try {
    await context.client.put(
      namespace,
      `actions/${encodePath(path)}?overwrite=${overwrite}`,
      conform(body, actionShape),
    );
  } catch (error) {
    throw wrapError(error, `Unable to create action '${path}'`, { showUsage: true });
  }
}

/** Refuses a file that the platform would refuse for its size, before the file is read and sent. */
async function checkSize({ args, flags, client }: CommandContext, namespace: string, action: string): Promise<void> {
  const [, file] = args;
  if (file === undefined || flags.bool('copy') || flags.bool('sequence')) return;
  const bytes = sizeOf(file);
  if (bytes === undefined || bytes < askedFromBytes) return;
  const most = await mostCodeBytes(client, namespace);
  if (most === undefined || bytes <= most) return;
  throw new WskError(
    `Unable to create action '${action}': exec larger than allowed: ${bytes} > ${most} bytes. (setting: limits.maxCodeBytes)`,
    { exitCode: tooLarge, showUsage: true },
  );
}

/** The largest code that the platform takes, bytes; undefined if it does not say: the answer to the action itself will. */
async function mostCodeBytes(client: CommandContext['client'], namespace: string): Promise<number | undefined> {
  try {
    const most = asMap(await client.get(namespace, 'limits')).get('maxActionCodeBytes');
    return most === undefined ? undefined : asNumber(most);
  } catch (error) {
    if (error instanceof WskError) return undefined;
    throw error;
  }
}

async function existingAction(
  { client }: CommandContext,
  namespace: string,
  path: string,
): Promise<JsonMap | undefined> {
  try {
    return conform(await client.get(namespace, `actions/${encodePath(path)}?code=false`), actionShape);
  } catch (error) {
    if (error instanceof WskError && error.exitCode === notFound) return undefined;
    throw wrapError(error, `Unable to get action '${path}'`, { showUsage: true });
  }
}

/** Reports every error before the action is sent as a mistake in the arguments. */
async function asArgument<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof WskError)) throw error;
    const { exitCode, showMessage } = error;
    throw new WskError(`Invalid argument(s). ${messageOf(error)}`, { exitCode, showMessage, showUsage: true });
  }
}

const flags: FlagSpec[] = [
  ...annotationFlags,
  {
    name: 'concurrency',
    short: 'c',
    type: 'int',
    default: 1,
    help: 'the maximum intra-container concurrent activation `LIMIT` for the action',
  },
  { name: 'copy', type: 'bool', help: 'treat ACTION as the name of an existing action' },
  { name: 'docker', type: 'string', help: 'use provided docker image (a path on DockerHub) to run the action' },
  { name: 'kind', type: 'string', help: 'the `KIND` of the action runtime (example: swift:default, nodejs:default)' },
  {
    name: 'logsize',
    short: 'l',
    type: 'int',
    default: 10,
    help: 'the maximum log size `LIMIT` in MB for the action',
  },
  {
    name: 'main',
    type: 'string',
    help: 'the name of the action entry point (function or fully-qualified method name when applicable)',
  },
  { name: 'memory', short: 'm', type: 'int', default: 256, help: 'the maximum memory `LIMIT` in MB for the action' },
  {
    name: 'native',
    type: 'bool',
    help: 'treat ACTION as native action (zip file provides a compatible executable to run)',
  },
  ...parameterFlags,
  { name: 'sequence', type: 'bool', help: 'treat ACTION as comma separated sequence of actions to invoke' },
  {
    name: 'timeout',
    short: 't',
    type: 'int',
    default: 60000,
    help: 'the timeout `LIMIT` in milliseconds after which the action is terminated',
  },
  {
    name: 'web',
    type: 'string',
    help: 'treat ACTION as a web action, a raw HTTP web action, or as a standard action; yes | true = web action, raw = raw HTTP web action, no | false = standard action',
  },
  {
    name: 'web-secure',
    type: 'string',
    help: 'secure the web action. where `SECRET` is true, false, or any string. Only valid when the ACTION is a web action',
  },
];

/** `wsk action create`. */
export const createCommand: Command = {
  name: 'create',
  argsUsage: 'ACTION_NAME ACTION',
  summary: 'create a new action',
  flags,
  run: create,
};

/** `wsk action update`. */
export const updateCommand: Command = {
  name: 'update',
  argsUsage: 'ACTION_NAME [ACTION]',
  summary: 'update an existing action, or create an action if it does not exist',
  flags: [
    ...flags,
    {
      name: 'del-annotation',
      type: 'strings',
      help: 'the list of annotations to be deleted from the action, e.g. --del-annotation key1 --del-annotation key2',
    },
  ],
  run: update,
};

const elfMagic = Buffer.from('\x7fELF');

/** The file extension of a runtime family's source code, or of its archives; empty if it has none. */
export function extensionOf(family: string, binary: boolean): string {
  const own = extensionForFamily('wsk', family.toLowerCase());
  if (own !== undefined && isBinaryExtension('wsk', own) === binary) return `.${own}`;
  return binary ? '.zip' : '';
}

const limitFlags = { memory: 'memory', logsize: 'logs', timeout: 'timeout', concurrency: 'concurrency' };

/** The action that the command line describes, without its name and with only the members that the user gave. */
async function definitionFrom(context: CommandContext, update: boolean): Promise<JsonMap> {
  const { flags, pairs } = context;
  const action: JsonMap = new Map();
  const limits = Object.entries(limitFlags).filter(([flag]) => flags.given(flag));
  if (limits.length > 0) action.set('limits', new Map(limits.map(([flag, name]) => [name, flags.int(flag)])));
  if (pairs.parameters.length > 0) action.set('parameters', toKeyValues(mergeObjects(pairs.parameters, 'parameter')));
  if (pairs.annotations.length > 0)
    action.set('annotations', toKeyValues(mergeObjects(pairs.annotations, 'annotation')));
  if (flags.text('kind') && flags.text('docker')) {
    const exitCode = exitCodes.notAllowed;
    throw new WskError('Cannot specify both --kind and --docker at the same time.', { exitCode });
  }
  if (flags.bool('copy')) await copyInto(action, context);
  else if (context.args.length > 1 || flags.text('docker') || flags.bool('sequence')) {
    action.set('exec', execFrom(context.args[1], flags));
  } else if (!update) throw noArtifact();
  if (update && flags.given('del-annotation')) action.set('delAnnotations', flags.texts('del-annotation'));
  return action;
}

/** `--copy`: code from the other action; its parameters and annotations follow those given here. */
async function copyInto(action: JsonMap, { args, client }: CommandContext): Promise<void> {
  if (args[1] === undefined) throw noArtifact();
  const { namespace, path } = parseQualifiedName(args[1]);
  let source: JsonMap;
  try {
    source = asMap(await client.get(namespace, `actions/${encodePath(path)}?code=true`));
  } catch (error) {
    throw wrapError(error, `Unable to get action '${path}'`, { showUsage: true });
  }
  action.set('exec', source.get('exec') ?? null);
  for (const list of ['parameters', 'annotations']) {
    action.set(list, [...asList(action.get(list)), ...asList(source.get(list))]);
  }
}

function execFrom(artifact: string | undefined, flags: Flags): JsonMap {
  const exec: JsonMap = new Map();
  if (flags.bool('sequence')) {
    if (artifact === undefined) throw noArtifact();
    exec.set('kind', 'sequence').set('components', artifact.split(',').map(fullyQualified));
    return exec;
  }
  const extension = /\.([^./]*)$/.exec(artifact ?? '')?.[1];
  if (artifact !== undefined) exec.set('code', codeOf(artifact, extension));
  if (flags.text('kind')) exec.set('kind', flags.text('kind'));
  else if (flags.text('docker') || flags.bool('native')) {
    exec.set('kind', 'blackbox');
    exec.set('image', flags.bool('native') ? 'openwhisk/dockerskeleton' : flags.text('docker'));
  } else exec.set('kind', kindFor(extension));
  if (flags.text('main')) exec.set('main', flags.text('main'));
  else if (exec.get('kind') === 'java') {
    throw usageError('Java actions require --main to specify the fully-qualified name of the main class');
  }
  return exec;
}

function codeOf(artifact: string, extension = ''): Json {
  const content = readUserFile(artifact);
  // OpenWhisk's CLI would send a program or a shared object as text, which breaks it.
  const binary = isBinaryExtension('wsk', extension) || content.subarray(0, elfMagic.length).equals(elfMagic);
  return content.toString(binary ? 'base64' : 'utf8');
}

function kindFor(extension: string | undefined): string {
  const family = familyForExtension('wsk', extension ?? '');
  if (family) return `${family}:default`;
  if (extension !== 'zip')
    throw usageError(`'${extension === undefined ? '' : `.${extension}`}' is not a supported action runtime`);
  throw usageError('creating an action from a .zip artifact requires specifying the action kind explicitly');
}

function noArtifact(): WskError {
  return usageError('An action name and code artifact are required.');
}
