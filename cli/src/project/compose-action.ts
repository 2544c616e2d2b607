import { readFileSync, statSync } from 'node:fs';
import { basename, dirname, extname, resolve } from 'node:path';
import { isBinaryExtension, allKinds, isKindOf, isSupported, kindForExtension, type Runtimes } from './runtimes.js';
import { messageOf, type WskError } from '../errors.js';
import { asMap, type Json, type JsonMap } from '../json/json.js';
import type { Scope } from './compose.js';
import { zipFolder } from './folder.js';
import { declaredAnnotations, interpolate, parametersFrom, qualified } from './inputs.js';
import { bareError, fileError, textOf } from './manifest.js';
import { inPackage, type PlannedAction } from './plan.js';

/** An action with its code. */
export async function composeAction(name: string, declared: JsonMap, scope: Scope): Promise<PlannedAction> {
  const exec = await execOf(name, declared, scope);
  const web = textOf(declared, 'web');
  const webExport = textOf(declared, 'web-export');
  if (web !== '' && webExport !== '') {
    scope.warn(`[${name}] has both web and web-export specified, only reading web, ignoring web-export.\n`);
  }
  const annotations = withWeb(name, declaredAnnotations(declared, scope), web || webExport, scope);
  checkSecret(name, annotations);
  if (declared.get('conductor') === true) annotations.set('conductor', true);
  return {
    name,
    isSequence: false,
    exec,
    version: interpolate(textOf(declared, 'version')),
    parameters: parametersFrom(asMap(declared.get('inputs')), scope.inputs, scope.commandLine, scope.file),
    annotations,
    limits: limitsOf(asMap(declared.get('limits')), scope),
  };
}

/** A sequence. A component without a package is an action of the sequence's package. */
export function composeSequence(name: string, declared: JsonMap, scope: Scope): PlannedAction {
  const names = textOf(declared, 'actions')
    .split(',')
    .map((action) => action.trim());
  const components = names
    .filter((action) => action !== '')
    .map((action) => qualified(scope.namespace, inPackage(action, scope.packageName)));
  const exec = new Map<string, Json>([
    ['kind', 'sequence'],
    ['components', components],
  ]);
  const annotations = withWeb(name, declaredAnnotations(declared, scope), textOf(declared, 'web'), scope);
  return { name, isSequence: true, exec, version: '', parameters: new Map(), annotations, limits: new Map() };
}

const webModes: Record<string, [web: boolean, raw: boolean]> = {
  true: [true, false],
  yes: [true, false],
  raw: [true, true],
  no: [false, false],
  false: [false, false],
};

function withWeb(name: string, annotations: JsonMap, mode: string, { file }: Scope): JsonMap {
  if (mode === '') return annotations;
  const [web, raw] = webModes[mode.toLowerCase()] ?? [];
  if (web === undefined || raw === undefined) {
    const valid = Object.keys(webModes).join(', ');
    const message = `Action [${name}]: web-export [${mode}]: Supported Web Exports [${valid}]`;
    throw fileError('ERROR_YAML_FILE_FORMAT_ERROR', file, message);
  }
  return setWeb(annotations, web, raw);
}

/** Puts the three annotations about the web last. */
export function setWeb(annotations: JsonMap, web: boolean, raw: boolean): JsonMap {
  const others = [...annotations].filter(([key]) => !['web-export', 'raw-http', 'final'].includes(key));
  return new Map<string, Json>([...others, ['web-export', web], ['raw-http', raw], ['final', web]]);
}

const secretKey = 'require-whisk-auth';

function checkSecret(name: string, annotations: JsonMap): void {
  const secret = annotations.get(secretKey);
  if (secret === undefined || typeof secret === 'boolean' || (typeof secret === 'string' && secret !== '')) return;
  if (typeof secret === 'number' && Number.isSafeInteger(secret) && secret > 0) return;
  throw bareError(
    `[ERROR_ACTION_ANNOTATION]: Unable to secure the web action; Action [${name}] Annotation [${secretKey}] has invalid value [${String(secret)}].\n`,
  );
}

const limits = [
  { declared: 'timeout', name: 'timeout', least: 100 },
  { declared: 'memorySize', name: 'memory', least: 128 },
  { declared: 'logSize', name: 'logs', least: 0 },
];

/** Leaves out invalid limits with a warning; the platform refuses those that are too high. */
function limitsOf(declared: JsonMap, { warn }: Scope): JsonMap {
  const result: JsonMap = new Map();
  for (const name of ['concurrentActivations', 'userInvocationRate', 'codeSize', 'parameterSize']) {
    if (declared.has(name)) warn(`Action Limit [${name}] is currently not changeable. Ignoring...\n`);
  }
  for (const limit of limits) {
    const value = declared.get(limit.declared) ?? null;
    if (typeof value !== 'number') continue;
    if (value < limit.least) warn(`Invalid action limit [${limit.declared}] in manifest is ignored.\n`);
    else result.set(limit.name, value);
  }
  return result;
}

/** Dependencies of reading an action's code. */
interface CodeOptions {
  /** Path of the manifest. */
  file: string;
  runtimes: Runtimes;
  /** Whether to use the manifest's runtime even if the platform does not offer it. */
  strict: boolean;
  warn(message: string): void;
}

const downloadTimeoutMs = 60_000;
const noRuntime = 'NOT SPECIFIED';

/**
 * The `exec` of an action: its code, from the manifest itself, a file, a folder or a URL, and its kind.
 * @throws WskError if there is no code or the platform cannot run it.
 */
async function execOf(name: string, action: JsonMap, options: CodeOptions): Promise<JsonMap> {
  const source = textOf(action, 'function') || textOf(action, 'location');
  const image = textOf(action, 'docker');
  const isBlackbox = image !== '' || action.get('native') === true;
  const exec: JsonMap = new Map();
  if (textOf(action, 'code') !== '') readInline(name, action, source, options, exec);
  if (source !== '') await readSource(name, action, source, isBlackbox, options, exec);
  if (isBlackbox) {
    exec.set('kind', 'blackbox');
    exec.set('image', action.get('native') === true ? 'openwhisk/dockerskeleton' : interpolate(image));
  }
  if (textOf(action, 'main') !== '') exec.set('main', textOf(action, 'main'));
  if (textOf(exec, 'kind') === '') {
    throw fileError('ERROR_YAML_PARSER_ERROR', options.file, `Action [${name}] has no kind set.`);
  }
  if (exec.get('code') === '') {
    throw fileError('ERROR_YAML_PARSER_ERROR', options.file, `Action [${name}] has no source code.`);
  }
  return exec;
}

function readInline(name: string, action: JsonMap, source: string, options: CodeOptions, exec: JsonMap): void {
  const refuse = (message: string): WskError => fileError('ERROR_YAML_FILE_FORMAT_ERROR', options.file, message);
  if (source !== '') {
    throw refuse(
      `Action [${name}] is invalid. It has both code and function specified, only one of them is expected.\n`,
    );
  }
  const runtime = textOf(action, 'runtime');
  if (runtime === '') {
    throw refuse(
      `Action [${name}] is invalid. It has code specified without any runtime. With action source code, runtime is mandatory.`,
    );
  }
  const known = options.strict || isSupported(options.runtimes, runtime);
  const kind = known ? runtime : options.runtimes.defaults.get(runtime);
  if (kind === undefined) throw refuse(invalidRuntime(runtime, name));
  exec.set('code', textOf(action, 'code')).set('kind', kind);
}

async function readSource(
  name: string,
  action: JsonMap,
  source: string,
  isBlackbox: boolean,
  options: CodeOptions,
  exec: JsonMap,
): Promise<void> {
  const { content, extension } = await contentOf(name, interpolate(source), action, options);
  const byExtension = kindForExtension(options.runtimes, extension);
  const runtime = textOf(action, 'runtime');
  if (runtime === '' && !isBlackbox) {
    if (extension === 'zip') throw unsupported(name, noRuntime, invalidRuntime(noRuntime, name), options);
    if (byExtension === undefined) {
      const message = `[${name}] has not specified any runtime and the action source file extension [${extension}] is not supported.\n`;
      throw unsupported(name, noRuntime, message, options);
    }
  }
  const kind = runtime === '' ? byExtension : chooseKind(name, runtime, extension, byExtension, options);
  if (kind !== undefined) exec.set('kind', kind);
  exec.set('code', content.toString(isBinaryExtension('wskdeploy', extension) ? 'base64' : 'utf8'));
}

/** The runtime that the manifest names, unless the file's type contradicts it. */
function chooseKind(
  name: string,
  runtime: string,
  extension: string,
  byExtension: string | undefined,
  options: CodeOptions,
): string | undefined {
  const supported = isSupported(options.runtimes, runtime);
  if (supported && (extension === 'zip' || isKindOf(options.runtimes, extension, runtime))) return runtime;
  const problem = supported
    ? `Runtime [${runtime}] specified in manifest does not match with action's source file extension [${extension}] for action [${name}].\n`
    : invalidRuntime(runtime, name);
  options.warn(problem);
  if (!supported && extension === 'zip') throw unsupported(name, runtime, problem, options);
  if (options.strict) return runtime;
  options.warn(
    `Runtime changed to [${byExtension ?? ''}] based on the action's source file extension for action [${name}].\n`,
  );
  return byExtension;
}

async function contentOf(
  name: string,
  source: string,
  action: JsonMap,
  { file }: CodeOptions,
): Promise<{ content: Buffer; extension: string }> {
  const extension = extname(source).slice(1);
  if (/^https?:\/\//.test(source)) {
    if (extension === '') {
      const message = `Action [${name}] has function pointing to remote directory [${source}], such actions are not supported.`;
      throw fileError('ERROR_YAML_FILE_FORMAT_ERROR', file, message);
    }
    return { content: await download(source), extension };
  }
  const path = resolve(dirname(file), source);
  try {
    if (!statSync(path).isDirectory()) return { content: readFileSync(path), extension };
    const archive = zipFolder(path, dirname(file), action.get('include') ?? null, action.get('exclude') ?? null);
    return { content: archive, extension: 'zip' };
  } catch (error) {
    throw fileError('ERROR_FILE_READ_ERROR', path, messageOf(error));
  }
}

async function download(url: string): Promise<Buffer> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(downloadTimeoutMs) });
    if (!response.ok) throw new Error(`HTTP status code ${response.status}`);
    return Buffer.from(await response.arrayBuffer());
  } catch (error) {
    throw fileError('ERROR_FILE_READ_ERROR', basename(url), `${url}: ${messageOf(error)}`);
  }
}

function invalidRuntime(runtime: string, name: string): string {
  return `Invalid or missing runtime [${runtime}] specified in manifest for the action [${name}].\n`;
}

function unsupported(name: string, runtime: string, message: string, { file, runtimes }: CodeOptions): WskError {
  const details = `Action [${name}]: Runtime [${runtime}]: Supported Runtimes [${allKinds(runtimes).join(', ')}]`;
  return fileError('ERROR_YAML_INVALID_RUNTIME', file, `${message} ${details}`);
}
