import type { JsonMap } from '../json/json.js';
import type { Repository } from './repository.js';

/** Everything that a project's files describe, ready to be sent. Parameters and annotations are maps by name. */
export interface Plan {
  /** Absent if the manifest names none. */
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
  /** `/namespace/package`, a folder, or what `repository` was read from. */
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

/** What a route is called in messages. */
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
