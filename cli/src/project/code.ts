import { readFileSync, statSync } from 'node:fs';
import { basename, dirname, extname, resolve } from 'node:path';
import { isBinaryExtension } from '../code-extensions.js';
import { messageOf, type WskError } from '../errors.js';
import type { JsonMap } from '../json/json.js';
import { interpolate } from './environment.js';
import { fileError } from './errors.js';
import { zipFolder } from './folder.js';
import { textOf } from './manifest.js';
import { allKinds, isKindOf, isSupported, kindForExtension, type Runtimes } from './runtimes.js';

/** What reading an action's code depends on. */
export interface CodeOptions {
  /** The manifest. */
  file: string;
  runtimes: Runtimes;
  /** The runtime that the manifest names is used whatever the platform says. */
  strict: boolean;
  warn(message: string): void;
}

const downloadTimeoutMs = 60_000;
const noRuntime = 'NOT SPECIFIED';

/**
 * The `exec` of an action: its code, from the manifest itself, a file, a folder or a URL, and the kind to run it.
 * @throws WskError if there is none or the platform cannot run it.
 */
export async function execOf(name: string, action: JsonMap, options: CodeOptions): Promise<JsonMap> {
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

/** The runtime that the manifest names, unless it does not fit the file. */
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
