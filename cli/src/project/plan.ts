import { asMap, stringify, type Json, type JsonMap } from '../json/json.js';
import { interpolateAll } from './inputs.js';
import { fileError, textOf, type Manifest } from './manifest.js';
import type { Repository } from './repository.js';

/** All entities of a project's files, ready to be sent. Parameters and annotations are maps by name. */
export interface Plan {
  /** Undefined if the manifest has no name. */
  projectName: string;
  packages: Map<string, PlannedPackage>;
  triggers: Map<string, PlannedTrigger>;
  rules: Map<string, PlannedRule>;
  apis: PlannedApi[];
  /** A swagger document, as JSON text, that describes an API of its own. */
  swagger?: string;
}

/** A package; the one called `default` stands for the namespace itself. */
export interface PlannedPackage {
  name: string;
  version: string;
  publish: boolean;
  parameters: JsonMap;
  annotations: JsonMap;
  dependencies: Map<string, PlannedDependency>;
  /** Actions, then sequences. */
  actions: Map<string, PlannedAction>;
}

/** A binding to a package, or a project in another folder or a repository. */
export interface PlannedDependency {
  /** `/namespace/package`, a folder, or the text that `repository` was parsed from. */
  location: string;
  isBinding: boolean;
  repository?: Repository;
  parameters: JsonMap;
  annotations: JsonMap;
}

/** An action or sequence. */
export interface PlannedAction {
  /** Without its package. */
  name: string;
  isSequence: boolean;
  exec: JsonMap;
  version: string;
  parameters: JsonMap;
  annotations: JsonMap;
  limits: JsonMap;
}

/** A trigger; `feed` is empty if it has none. */
export interface PlannedTrigger {
  name: string;
  feed: string;
  parameters: JsonMap;
  annotations: JsonMap;
}

/** A rule; names without `/` in front are in the project's namespace. */
export interface PlannedRule {
  name: string;
  trigger: string;
  action: string;
  annotations: JsonMap;
}

/** A route of an API. */
export interface PlannedApi {
  apiName: string;
  basePath: string;
  path: string;
  verb: string;
  packageName: string;
  actionName: string;
  responseType: string;
}

/** A route's name in messages. */
export function apiLabel({ apiName, basePath, path, verb }: PlannedApi): string {
  return `${apiName} ${basePath}${path} ${verb}`;
}

/** Whether a package is the namespace itself. */
export function isDefaultPackage(name: string): boolean {
  return name.toLowerCase() === 'default';
}

/** An action's name with its package, if it is in one. */
export function pathOf(packageName: string, actionName: string): string {
  return isDefaultPackage(packageName) ? actionName : `${packageName}/${actionName}`;
}

/** The plan as text, for `--preview`. */
export function describePlan(plan: Plan): string {
  const lines = ['Packages:'];
  for (const { name, parameters, annotations, dependencies, actions } of plan.packages.values()) {
    lines.push(`Name: ${name}`, ...values('bindings', parameters), ...values('annotation', annotations));
    for (const [label, { location }] of dependencies) {
      lines.push(`  * dependency: ${label}`, `    location: ${location}`);
    }
    lines.push('');
    for (const action of [...actions.values()].filter(({ isSequence }) => !isSequence)) {
      lines.push(`  * action: ${action.name}`, ...values('bindings', action.parameters));
      lines.push(...values('annotation', action.annotations));
    }
    lines.push('');
    for (const sequence of [...actions.values()].filter(({ isSequence }) => isSequence)) {
      lines.push(`  * sequence: ${sequence.name}`, ...values('annotation', sequence.annotations));
    }
    lines.push('');
  }
  lines.push('Triggers:');
  for (const { name, parameters, annotations } of plan.triggers.values()) {
    lines.push(`* trigger: ${name}`, ...values('bindings', parameters), ...values('annotation', annotations));
  }
  lines.push('', 'Rules');
  for (const { name, trigger, action, annotations } of plan.rules.values()) {
    lines.push(`* rule: ${name}`, ...values('annotation', annotations));
    lines.push(`    - trigger: ${trigger}`, `    - action: ${action}`);
  }
  return `${lines.join('\n')}\n\n`;
}

function values(title: string, map: JsonMap): string[] {
  return [`    ${title}: `, ...[...map].map(([name, value]) => `        - ${name} : ${shown(title, value)}`)];
}

function shown(title: string, value: Json): string {
  return title === 'annotation' && typeof value === 'string' ? value : stringify(value, 2);
}

/** The parts of a plan that a deployment file can change. */
interface Changeable {
  parameters: JsonMap;
  annotations: JsonMap;
}

/**
 * Replaces inputs and annotations of the plan by a deployment file's; the command line's values take precedence.
 * @throws WskError if the file is about another project.
 */
export function applyDeployment(
  plan: Plan,
  manifest: Manifest,
  deployment: Manifest,
  commandLine: JsonMap,
  warn: (message: string) => void,
): void {
  const [own, theirs] = [textOf(manifest.project, 'name'), textOf(deployment.project, 'name')];
  if (manifest.inProject && deployment.inProject && own !== '' && own !== theirs) {
    const message = `The project named [${theirs}] in deployment file [${deployment.file}] does not match the name [${own}] in manifest file [${manifest.file}].`;
    throw fileError('ERROR_YAML_FILE_FORMAT_ERROR', manifest.file, message);
  }
  const change = (kind: string, name: string, target: Changeable | undefined, declared: JsonMap): void => {
    if (target) bind(target, declared, commandLine);
    else warn(`The ${kind} [${name}] in the deployment file was not found in the manifest file.\n`);
  };
  for (const [name, declared] of deployment.packages) {
    const planned = plan.packages.get(name);
    change('package', name, planned, declared);
    for (const [actionName, action] of asMap(declared.get('actions'))) {
      change('action', actionName, planned?.actions.get(actionName), asMap(action));
    }
    for (const [triggerName, trigger] of asMap(declared.get('triggers'))) {
      change('trigger', triggerName, plan.triggers.get(triggerName), asMap(trigger));
    }
  }
}

function bind(target: Changeable, declared: JsonMap, commandLine: JsonMap): void {
  for (const [name, input] of asMap(declared.get('inputs'))) {
    const given = commandLine.get(name) ?? asMap(input).get('value') ?? asMap(input).get('default') ?? null;
    target.parameters.set(name, interpolateAll(given));
  }
  for (const [name, value] of asMap(declared.get('annotations'))) target.annotations.set(name, interpolateAll(value));
}

/** `package/action` for an action that is named without a package. */
export function inPackage(action: string, packageName: string): string {
  return action.includes('/') || isDefaultPackage(packageName) ? action : `${packageName}/${action}`;
}
