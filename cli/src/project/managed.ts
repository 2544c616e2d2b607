import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { annotationsOf, feedOf, valueOf } from '../args/parameters.js';
import { asList, asMap, type Json, type JsonMap } from '../json/json.js';
import { removeTrigger, undeploy, type Removable } from './deploy.js';
import { find, listAll, memberText, removeIfThere, routes, type Deployer } from './deployer.js';
import type { PlannedDependency } from './plan.js';

const managedKey = 'whisk-managed';

/** The annotation on all entities of a synchronised project; its hash identifies a state of the manifest. */
export function managedAnnotation(projectName: string, file: string): JsonMap {
  const content = readFileSync(file);
  const size = content.length <= 0x10ffff && (content.length & 0xf800) !== 0xd800 ? content.length : 0xfffd;
  const hash = createHash('sha1')
    .update(`OpenWhisk${String.fromCodePoint(size)}golang\0`)
    .update(content);
  return new Map<string, Json>([
    ['file', file],
    ['projectDeps', []],
    ['projectHash', hash.digest('hex')],
    ['projectName', projectName],
  ]);
}

/** An entity's annotation about its project; empty if it belongs to no project. */
function managedBy(entity: JsonMap): JsonMap {
  return asMap(valueOf(annotationsOf(entity), managedKey));
}

/** Whether the entity belongs to the project. */
export function isOf(entity: JsonMap, projectName: string): boolean {
  return memberText(managedBy(entity), 'projectName') === projectName;
}

/** Deletes entities that were removed from the project: those that carry the hash of an earlier manifest. */
export async function removeGone(deployer: Deployer, managed: JsonMap): Promise<void> {
  const project = memberText(managed, 'projectName');
  const isGone = (entity: JsonMap): boolean =>
    isOf(entity, project) && memberText(managedBy(entity), 'projectHash') !== memberText(managed, 'projectHash');
  const gone = async (kind: string, collection: string): Promise<{ name: string; entity: JsonMap }[]> => {
    const found = (await listAll(deployer, collection)).filter(isGone);
    return found.map((entity) => {
      const [, packageName] = memberText(entity, 'namespace').split('/');
      const name = `${packageName === undefined ? '' : `${packageName}/`}${memberText(entity, 'name')}`;
      deployer.warn(
        `Deleting ${kind} [${name}] which was removed from the current managed project [${project}] as part of undeployment.\n`,
      );
      return { name, entity };
    });
  };
  for (const { name } of await gone('rule', 'rules')) await removeIfThere(deployer, 'rule', name, routes.rule(name));
  for (const { name, entity } of await gone('trigger', 'triggers')) await removeTrigger(deployer, name, feedOf(entity));
  for (const { name } of await gone('action', 'actions')) {
    await removeIfThere(deployer, 'action', name, routes.action(name));
  }
  for (const { name } of await gone('package', 'packages')) {
    await removeIfThere(deployer, 'package', name, routes.package(name));
  }
}

/** Entities on the platform under a project's name. */
export async function projectAssets(deployer: Deployer, projectName: string): Promise<Removable> {
  const own = async (collection: string): Promise<JsonMap[]> =>
    (await listAll(deployer, collection)).filter((entity) => isOf(entity, projectName));
  const packages: Removable['packages'] = new Map();
  const addPackage = (name: string) => {
    const added = packages.get(name) ?? { actions: new Map(), dependencies: new Map() };
    packages.set(name, added);
    return added;
  };
  for (const entity of await own('packages')) addPackage(memberText(entity, 'name'));
  for (const entity of await own('actions')) {
    const [, packageName = 'default'] = memberText(entity, 'namespace').split('/');
    const name = memberText(entity, 'name');
    const isSequence = valueOf(annotationsOf(entity), 'exec') === 'sequence';
    addPackage(packageName).actions.set(name, { name, isSequence });
  }
  const named = (entity: JsonMap) => ({ name: memberText(entity, 'name'), feed: feedOf(entity) });
  const triggers = (await own('triggers')).map(named);
  const rules = (await own('rules')).map(named);
  return {
    apis: [],
    packages,
    triggers: new Map(triggers.map((trigger) => [trigger.name, trigger])),
    rules: new Map(rules.map((rule) => [rule.name, rule])),
  };
}

/** The projects in other folders that this project alone depends on. */
async function dependentProjects(deployer: Deployer, projectName: string): Promise<string[]> {
  const packages = await listAll(deployer, 'packages');
  const dependenciesOf = (entity: JsonMap): string[] =>
    asList(managedBy(entity).get('projectDeps')).map((one) => memberText(asMap(one), 'key'));
  const own = packages.filter((entity) => isOf(entity, projectName)).flatMap(dependenciesOf);
  const others = packages.filter((entity) => !isOf(entity, projectName)).flatMap(dependenciesOf);
  const projects: string[] = [];
  for (const path of new Set(own.filter((name) => !others.includes(name)))) {
    const found = await find(deployer, routes.package(path.split('/')[2] ?? ''));
    const name = found ? memberText(managedBy(found), 'projectName') : '';
    if (name !== '' && name !== projectName) projects.push(name);
  }
  return [...new Set(projects)];
}

/** The entries of `projectDeps` about projects in other folders: their package and its own annotation. */
export async function dependencyAnnotations(
  deployer: Deployer,
  dependencies: Map<string, PlannedDependency>,
): Promise<Json[]> {
  const annotations = new Map<string, Json>();
  for (const [label, { isBinding }] of dependencies) {
    if (isBinding) continue;
    let found = await find(deployer, routes.package(label));
    const provider = memberText(asMap(found?.get('binding')), 'name');
    if (provider !== '') found = await find(deployer, routes.package(provider));
    if (!found || managedBy(found).size === 0) continue;
    const key = `/${memberText(found, 'namespace')}/${memberText(found, 'name')}`;
    annotations.set(
      key,
      new Map<string, Json>([
        ['key', key],
        ['value', managedBy(found)],
      ]),
    );
  }
  return [...annotations.values()];
}

/** Deletes all of a project's entities, found by its name, and those of projects that only it depended on. */
export async function undeployProject(deployer: Deployer, projectName: string): Promise<void> {
  const folders = async (): Promise<void> => undefined; // dependent projects are found by name below
  for (const name of [projectName, ...(await dependentProjects(deployer, projectName))]) {
    await undeploy(await projectAssets(deployer, name), deployer, folders);
  }
}
