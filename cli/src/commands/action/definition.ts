import type { Flags } from '../../args/flags.js';
import { mergeObjects, toKeyValues } from '../../args/parameters.js';
import { fullyQualified, parseQualifiedName } from '../../args/qualified-name.js';
import { extensionForFamily, familyForExtension, isBinaryExtension } from '../../code-extensions.js';
import { encodePath } from '../../client/api-host.js';
import { exitCodes, usageError, WskError, wrapError } from '../../errors.js';
import { readUserFile } from '../../files.js';
import { asList, asMap, type Json, type JsonMap } from '../../json/json.js';
import type { CommandContext } from '../command.js';

const elfMagic = Buffer.from('\x7fELF');

/** The file extension of a runtime family's source code, or of its archives; empty if it has none. */
export function extensionOf(family: string, binary: boolean): string {
  const own = extensionForFamily('wsk', family.toLowerCase());
  if (own !== undefined && isBinaryExtension('wsk', own) === binary) return `.${own}`;
  return binary ? '.zip' : '';
}

const limitFlags = { memory: 'memory', logsize: 'logs', timeout: 'timeout', concurrency: 'concurrency' };

/** The action that the command line describes, without its name; only what the user gave is in it. */
export async function definitionFrom(context: CommandContext, update: boolean): Promise<JsonMap> {
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
