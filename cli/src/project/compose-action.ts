import { asMap, type Json, type JsonMap } from '../json/json.js';
import { execOf } from './code.js';
import { annotationsOf, inPackage, qualified, type Scope } from './compose.js';
import { interpolate } from './environment.js';
import { bareError, fileError } from './errors.js';
import { parametersFrom } from './inputs.js';
import { textOf } from './manifest.js';
import type { PlannedAction } from './plan.js';

/** An action with its code. */
export async function composeAction(name: string, declared: JsonMap, scope: Scope): Promise<PlannedAction> {
  const exec = await execOf(name, declared, scope);
  const web = textOf(declared, 'web');
  const webExport = textOf(declared, 'web-export');
  if (web !== '' && webExport !== '') {
    scope.warn(`[${name}] has both web and web-export specified, only reading web, ignoring web-export.\n`);
  }
  const annotations = withWeb(name, annotationsOf(declared, scope), web || webExport, scope);
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

/** A sequence; its actions are those of its package unless they are named with another. */
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
  const annotations = withWeb(name, annotationsOf(declared, scope), textOf(declared, 'web'), scope);
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

/** Limits that make no sense are left out with a warning; those that are too high are the platform's to refuse. */
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
