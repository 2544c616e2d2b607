import { pathParameters, readSwagger } from '../client/gateway.js';
import { messageOf, type WskError } from '../errors.js';
import { asMap, type Json, type JsonMap } from '../json/json.js';
import { composeAction, composeSequence, setWeb } from './compose-action.js';
import {
  declaredAnnotations,
  interpolate,
  nameFrom,
  packageInputs,
  parametersFrom,
  resolveInput,
  valuesOf,
  type Input,
} from './inputs.js';
import { bareError, fileError, textOf, type Manifest } from './manifest.js';
import {
  inPackage,
  isDefaultPackage,
  type Plan,
  type PlannedAction,
  type PlannedApi,
  type PlannedDependency,
  type PlannedPackage,
  type PlannedRule,
} from './plan.js';
import { repositoryAt, type Repository } from './repository.js';
import type { Runtimes } from './runtimes.js';

/** Options of composing a plan. */
export interface ComposeOptions {
  runtimes: Runtimes;
  strict: boolean;
  /** Target namespace of the project; `_` is the key's own. */
  namespace: string;
  /** `--param` and `--param-file`. */
  commandLine: JsonMap;
  /** Replaces the manifest's name; empty if not given. */
  projectName: string;
  /** The annotation `whisk-managed`, in projects that are synchronised. */
  managed?: JsonMap;
  warn(message: string): void;
}

/** Position in the manifest, and the settings that apply there. */
export interface Scope extends ComposeOptions {
  file: string;
  packageName: string;
  inputs: Map<string, Input>;
}

/**
 * Makes a plan of the manifest's entities, reading the code of its actions.
 * @throws WskError if the manifest contradicts itself or lacks a required part. Also throws for a file that cannot be
 * read.
 */
export async function compose(manifest: Manifest, options: ComposeOptions): Promise<Plan> {
  const { file, project } = manifest;
  const projectInputs = new Map(
    [...asMap(project.get('inputs'))].map(([name, declared]) => [name, resolveInput(name, asMap(declared), file)]),
  );
  const plan: Plan = {
    projectName: options.projectName || textOf(project, 'name'),
    packages: new Map(),
    triggers: new Map(),
    rules: new Map(),
    apis: [],
  };
  if (manifest.packages.size === 0) options.warn(`The manifest file [${file}] contained no packages.\n`);
  for (const [declaredName, declared] of manifest.packages) {
    const name = nameFrom(declaredName, projectInputs);
    const inputs = packageInputs(asMap(declared.get('inputs')), projectInputs, options.commandLine, file);
    const scope = { ...options, file, packageName: name, inputs };
    const own = new Map([...inputs].filter(([input]) => !projectInputs.has(input)));
    const planned = await composePackage(declared, scope, valuesOf(own));
    plan.packages.set(name, planned);
    addTriggers(plan, declared, scope);
    addRules(plan, declared, scope);
    plan.apis.push(...composeApis(declared, planned, scope));
  }
  const config = textOf(project, 'config');
  if (config !== '') plan.swagger = await readSwagger(config);
  return plan;
}

async function composePackage(declared: JsonMap, scope: Scope, parameters: JsonMap): Promise<PlannedPackage> {
  const { packageName: name, warn } = scope;
  const missing = (key: string, value: string): void => {
    warn(`The mandatory key [${key}] should be set. Using default value [${value}]...\n`);
    warn(`The value for key [${key}] is not saved in the current version of wskdeploy.\n`);
  };
  if (textOf(declared, 'version') === '') missing('version', '0.0.1');
  if (textOf(declared, 'license') === '') missing('license', 'unlicensed');
  const publish = !isDefaultPackage(name) && declared.get('public') === true;
  if (publish)
    warn(`[${name}] is marked as public in manifest file, it will be visible and can be accessed by anyone\n`);
  const planned: PlannedPackage = {
    name,
    version: interpolate(textOf(declared, 'version')) || '0.0.1',
    publish,
    parameters,
    annotations: declaredAnnotations(declared, scope),
    dependencies: dependenciesOf(declared, scope),
    actions: new Map(),
  };
  for (const [actionName, action] of asMap(declared.get('actions'))) {
    planned.actions.set(actionName, await composeAction(actionName, asMap(action), scope));
  }
  for (const [declaredName, sequence] of asMap(declared.get('sequences'))) {
    const action = composeSequence(nameFrom(declaredName, scope.inputs), asMap(sequence), scope);
    if (planned.actions.has(action.name)) {
      const message = `Sequence [${action.name}] is already defined as an action under the same package. Actions and sequences can not have same name in a single package.`;
      throw fileError('ERROR_YAML_PARSER_ERROR', scope.file, message);
    }
    planned.actions.set(action.name, action);
  }
  return planned;
}

function dependenciesOf(declared: JsonMap, scope: Scope): Map<string, PlannedDependency> {
  const dependencies = new Map<string, PlannedDependency>();
  for (const [name, value] of asMap(declared.get('dependencies'))) {
    const dependency = asMap(value);
    const location = interpolate(textOf(dependency, 'location'));
    const repository = /^\.{0,2}\//.test(location) ? undefined : repositoryOf(name, location, dependency, scope);
    const parameters = parametersFrom(asMap(dependency.get('inputs')), scope.inputs, scope.commandLine, scope.file);
    const annotations = declaredAnnotations(dependency, scope);
    const planned = { location, isBinding: location.startsWith('/'), parameters, annotations };
    dependencies.set(name, repository ? { ...planned, repository } : planned);
  }
  return dependencies;
}

function repositoryOf(name: string, location: string, dependency: JsonMap, { file }: Scope): Repository {
  const fail = (reason: string): WskError =>
    fileError('ERROR_YAML_FILE_FORMAT_ERROR', file, `Dependency [${name}]: ${reason}.\n`);
  let repository: Repository | undefined;
  try {
    repository = repositoryAt(location, interpolate(textOf(dependency, 'version')));
  } catch (error) {
    throw fail(messageOf(error));
  }
  if (repository) return repository;
  throw fail(
    `the location [${location}] is neither a package (/NAMESPACE/PACKAGE) nor a folder (./FOLDER) nor a repository (github.com/OWNER/NAME)`,
  );
}

function addTriggers(plan: Plan, declared: JsonMap, scope: Scope): void {
  for (const [declaredName, value] of asMap(declared.get('triggers'))) {
    const trigger = asMap(value);
    const name = nameFrom(declaredName, scope.inputs);
    if (textOf(trigger, 'source') !== '') {
      const advice = 'please use the [feed] key instead';
      scope.warn(`The [source] key in the manifest file will soon be deprecated, ${advice}.\n`);
    }
    const feed = interpolate(textOf(trigger, 'feed') || textOf(trigger, 'source'));
    const before = plan.triggers.get(name);
    if (before && before.feed !== feed) {
      const message = `One single trigger [${name}] is defined with multiple feeds ["${feed}", "${before.feed}"]. Triggers are created directly under the namespace, its not possible to have triggers with same name but different feeds. Please update trigger names in manifest file.`;
      throw fileError('ERROR_YAML_PARSER_ERROR', scope.file, message);
    }
    const parameters = parametersFrom(asMap(trigger.get('inputs')), scope.inputs, scope.commandLine, scope.file);
    const ofFeed: [string, Json][] = feed === '' ? [] : [['feed', feed]];
    const annotations = new Map([...ofFeed, ...declaredAnnotations(trigger, scope)]);
    plan.triggers.set(name, { name, feed, parameters, annotations });
  }
}

function addRules(plan: Plan, declared: JsonMap, scope: Scope): void {
  for (const [declaredName, value] of asMap(declared.get('rules'))) {
    const rule = composeRule(nameFrom(declaredName, scope.inputs), asMap(value), scope);
    const before = plan.rules.get(rule.name);
    if (before && (before.trigger !== rule.trigger || before.action !== rule.action)) {
      const message = `One single rule [${rule.name}] is defined with different actions ["${rule.action}", "${before.action}"] and/or triggers ["${rule.trigger}", "${before.trigger}"]. Rules are created directly under the namespace, its not possible to have rules with same name but associated with different actions/triggers. Please update rule names in manifest file.`;
      throw fileError('ERROR_YAML_PARSER_ERROR', scope.file, message);
    }
    plan.rules.set(rule.name, rule);
  }
}

function composeRule(name: string, declared: JsonMap, scope: Scope): PlannedRule {
  const trigger = nameFrom(textOf(declared, 'trigger'), scope.inputs).trim();
  const action = nameFrom(textOf(declared, 'action'), scope.inputs).trim();
  if (trigger === '' || action === '') {
    const message = `Rule [${name}] must name a trigger and an action.`;
    throw fileError('ERROR_YAML_FILE_FORMAT_ERROR', scope.file, message);
  }
  return {
    name,
    trigger,
    action: inPackage(action, scope.packageName),
    annotations: declaredAnnotations(declared, scope),
  };
}

const verbs = ['GET', 'PUT', 'POST', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS'];

/**
 * The routes that a package declares. Their actions become web actions, or with `--strict` must be.
 * @throws WskError for a route to an unknown action, an unknown method or a base path with more than one part.
 */
function composeApis(declared: JsonMap, planned: PlannedPackage, scope: Scope): PlannedApi[] {
  const apis: PlannedApi[] = [];
  for (const [apiName, basePaths] of asMap(declared.get('apis'))) {
    for (const [basePath, paths] of asMap(basePaths)) {
      checkBasePath(basePath, scope);
      for (const [path, actions] of asMap(paths)) {
        for (const [actionName, method] of asMap(actions)) {
          const route = { apiName, basePath: withSlash(basePath), path: withSlash(path), actionName };
          apis.push(composeApi(route, asMap(method), planned, scope));
        }
      }
    }
  }
  return apis;
}

function composeApi(
  route: { apiName: string; basePath: string; path: string; actionName: string },
  method: JsonMap,
  planned: PlannedPackage,
  { file, strict, warn }: Scope,
): PlannedApi {
  const { apiName, basePath, path, actionName } = route;
  const action = planned.actions.get(actionName);
  if (!action) {
    const message = `Action/Sequence [${actionName}] is missing from manifest file, API [${apiName}] can only be created based on the action/sequence from manifest file. Please update manifest file to include [${actionName}] as a web action/sequence.\n`;
    throw fileError('ERROR_YAML_FILE_FORMAT_ERROR', file, message);
  }
  exportToWeb(apiName, action, strict, warn);
  const verb = textOf(method, 'method').toUpperCase();
  if (!verbs.includes(verb)) {
    const given = textOf(method, 'method');
    const message = `API [${basePath}${path}]: API gateway method [${given}]: API gateway supported methods [${verbs.join(', ')}]`;
    throw fileError('ERROR_YAML_FILE_FORMAT_ERROR', file, message);
  }
  let responseType = textOf(method, 'response');
  if (pathParameters(path).length > 0 && responseType !== 'http') {
    warn(
      `API [${apiName}] with path parameters [${path}] is required to have http as response type. Changing response type from [${responseType}] to http for [${apiName}].\n`,
    );
    responseType = 'http';
  }
  return { apiName, basePath, path, verb, packageName: planned.name, actionName, responseType };
}

function exportToWeb(apiName: string, action: PlannedAction, strict: boolean, warn: (message: string) => void): void {
  const isWeb = action.annotations.get('web-export');
  if (isWeb === true) return;
  const kind = action.isSequence ? 'sequence' : 'action';
  const title = action.isSequence ? 'Sequence' : 'Action';
  const problem = `${title} [${action.name}] is not a web ${kind}, API [${apiName}] can only be created using a web ${kind}.`;
  if (isWeb !== undefined || strict) throw bareError(`[ERROR_YAML_INVALID_API]: ${problem}\n`);
  warn(`${problem} Converting [${action.name}] to a web ${kind}.\n`);
  action.annotations = setWeb(action.annotations, true, false);
}

function checkBasePath(basePath: string, { file }: Scope): void {
  if (basePath !== '' && !basePath.replace(/^\//, '').includes('/')) return;
  const message = `API Gateway base path [${basePath}] is invalid. It has path parameters which is not supported, only relative path supports path parameters.`;
  throw fileError('ERROR_YAML_PARSER_ERROR', file, message);
}

const withSlash = (path: string): string => (path.startsWith('/') ? path : `/${path}`);
