import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { feedOf } from '../args/parameters.js';
import { apisOf, callGateway, operationsOf } from '../client/gateway.js';
import { messageOf, WskError } from '../errors.js';
import { stringifyYaml } from '../files.js';
import { asList, asMap, asText, stringify, type Json, type JsonMap } from '../json/json.js';
import { clientError, find, listAll, memberText, routes, tellFeed, type Deployer } from './deployer.js';
import { isOf } from './managed.js';
import { fileError } from './manifest.js';
import { extensionForKind } from './runtimes.js';

const notFound = 404 - 256;
/** Annotations that the platform or the project's own deployment writes again. */
const addedAgain = ['whisk-managed', 'exec', 'provide-api-key', 'binding', 'feed'];

/** Writes the manifest of a synchronised project of the platform, and beside it the code of its actions. */
export async function exportProject(deployer: Deployer, projectName: string, manifestFile: string): Promise<void> {
  const folder = dirname(manifestFile);
  const packages = await exportPackages(deployer, projectName);
  await exportActions(deployer, projectName, folder, packages);
  const first = [...packages.values()][0];
  if (first) {
    first.set('triggers', await exportTriggers(deployer, projectName));
    first.set('rules', await exportRules(deployer, projectName));
  }
  await exportApis(deployer, packages);
  for (const members of packages.values()) dropEmpty(members);
  const manifest = new Map<string, Json>([
    ['project', new Map([['name', projectName]])],
    ['packages', packages],
  ]);
  write(manifestFile, await stringifyYaml(manifest));
}

function write(file: string, content: string | Buffer): void {
  try {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
  } catch (error) {
    throw fileError('ERROR_FILE_READ_ERROR', file, messageOf(error));
  }
}

async function exportPackages(deployer: Deployer, projectName: string): Promise<Map<string, JsonMap>> {
  const packages = new Map<string, JsonMap>();
  const dependencies: JsonMap = new Map();
  for (const row of (await listAll(deployer, 'packages')).filter((entity) => isOf(entity, projectName))) {
    const name = memberText(row, 'name');
    const entity = (await find(deployer, routes.package(name))) ?? row;
    const binding = asMap(entity.get('binding'));
    if (memberText(binding, 'name') === '') packages.set(name, exportPackage(entity));
    else {
      const location = `/${memberText(binding, 'namespace')}/${memberText(binding, 'name')}`;
      const dependency = new Map<string, Json>([
        ['location', location],
        ['inputs', inputsOf(entity)],
        ['annotations', annotationsOf(entity)],
      ]);
      dependencies.set(name, dropEmpty(dependency));
    }
  }
  if (dependencies.size > 0)
    packageCalled(packages, [...packages.keys()][0] ?? 'default').set('dependencies', dependencies);
  return packages;
}

function packageCalled(packages: Map<string, JsonMap>, name: string): JsonMap {
  const members = packages.get(name) ?? new Map<string, Json>();
  packages.set(name, members);
  return members;
}

function exportPackage(entity: JsonMap): JsonMap {
  return new Map<string, Json>([
    ['version', memberText(entity, 'version')],
    ['license', 'unlicensed'],
    ['public', entity.get('publish') === true ? true : null],
    ['inputs', inputsOf(entity)],
    ['annotations', annotationsOf(entity)],
  ]);
}

/** Drops empty members. */
function dropEmpty(members: JsonMap): JsonMap {
  for (const [name, value] of members) {
    if (value === null || value === '' || (value instanceof Map && value.size === 0)) members.delete(name);
  }
  return members;
}

function keyValues(entity: JsonMap, member: string): [string, Json][] {
  return asList(entity.get(member))
    .map(asMap)
    .map((item): [string, Json] => [memberText(item, 'key'), item.get('value') ?? null]);
}

/** The long form of inputs, so that no value is read as the name of a type or as an environment variable. */
function inputsOf(entity: JsonMap): JsonMap {
  return new Map(keyValues(entity, 'parameters').map(([key, value]) => [key, new Map([['value', escaped(value)]])]));
}

function annotationsOf(entity: JsonMap): JsonMap {
  const own = keyValues(entity, 'annotations').filter(([key]) => !addedAgain.includes(key));
  return new Map(own.map(([key, value]) => [key, escaped(value)]));
}

/** Writes `${NAME}` as `$${NAME}`, which a manifest does not replace. */
function escaped(value: Json): Json {
  if (typeof value === 'string') return value.replace(/\$\{/g, () => '$${');
  if (Array.isArray(value)) return value.map(escaped);
  return value instanceof Map ? new Map([...value].map(([key, item]) => [key, escaped(item)])) : value;
}

async function exportActions(
  deployer: Deployer,
  projectName: string,
  folder: string,
  packages: Map<string, JsonMap>,
): Promise<void> {
  for (const row of (await listAll(deployer, 'actions')).filter((entity) => isOf(entity, projectName))) {
    const [, inPackage] = memberText(row, 'namespace').split('/');
    const name = memberText(row, 'name');
    const path = inPackage === undefined ? name : `${inPackage}/${name}`;
    const entity = await find(deployer, `${routes.action(path)}?code=true`);
    if (!entity) continue; // deleted since it was listed
    const packageName = inPackage ?? 'default';
    const exec = asMap(entity.get('exec'));
    const isSequence = memberText(exec, 'kind') === 'sequence';
    const members = packageCalled(packages, packageName);
    const exported = isSequence
      ? exportSequence(exec, entity)
      : exportAction(exec, entity, folder, packageName, asMap(members.get('inputs')));
    const collection = isSequence ? 'sequences' : 'actions';
    members.set(collection, asMap(members.get(collection)).set(name, dropEmpty(exported)));
  }
}

function exportSequence(exec: JsonMap, entity: JsonMap): JsonMap {
  const own = `/${memberText(entity, 'namespace').split('/')[0]}/`;
  const names = asList(exec.get('components')).map(asText);
  const actions = names.map((name) => (name.startsWith(own) ? name.slice(own.length) : name)).join(', ');
  return new Map<string, Json>([
    ['actions', actions],
    ['annotations', annotationsOf(entity)],
  ]);
}

/** Parameters and annotations that an action inherits from its package are left out. */
function exportAction(
  exec: JsonMap,
  entity: JsonMap,
  folder: string,
  packageName: string,
  ofPackage: JsonMap,
): JsonMap {
  const kind = memberText(exec, 'kind');
  const limits = asMap(entity.get('limits'));
  const limit = (name: string): Json => limits.get(name) ?? null;
  return new Map<string, Json>([
    ['function', saveCode(exec, memberText(entity, 'name'), folder, packageName)],
    ['runtime', kind === 'blackbox' ? '' : kind],
    ['docker', memberText(exec, 'image')],
    ['main', memberText(exec, 'main')],
    ['inputs', new Map([...inputsOf(entity)].filter(([name, input]) => !sameJson(input, ofPackage.get(name))))],
    ['annotations', annotationsOf(entity)],
    [
      'limits',
      dropEmpty(
        new Map([
          ['timeout', limit('timeout')],
          ['memorySize', limit('memory')],
          ['logSize', limit('logs')],
        ]),
      ),
    ],
  ]);
}

const sameJson = (a: Json, b: Json | undefined): boolean => b !== undefined && stringify(a) === stringify(b);

/** The path of the code, relative to the manifest; empty for an image without code. */
function saveCode(exec: JsonMap, name: string, folder: string, packageName: string): string {
  const code = exec.get('code');
  if (typeof code !== 'string') return '';
  const binary = exec.get('binary') === true;
  const kind = memberText(exec, 'kind');
  const extension = binary ? (kind.startsWith('java') ? 'jar' : 'zip') : extensionForKind(kind);
  const file = `${packageName}/${name}${extension === '' ? '' : `.${extension}`}`;
  write(join(folder, file), Buffer.from(code, binary ? 'base64' : 'utf8'));
  return file;
}

async function exportTriggers(deployer: Deployer, projectName: string): Promise<JsonMap> {
  const triggers: JsonMap = new Map();
  for (const row of (await listAll(deployer, 'triggers')).filter((entity) => isOf(entity, projectName))) {
    const name = memberText(row, 'name');
    const entity = (await find(deployer, routes.trigger(name))) ?? row;
    const feed = feedOf(entity);
    const inputs = inputsOf(entity);
    if (feed !== '') {
      for (const [key, value] of await feedConfiguration(deployer, feed, name)) {
        if (key !== 'startDate') inputs.set(key, new Map([['value', escaped(value)]]));
      }
    }
    const members: [string, Json][] = [
      ['feed', feed],
      ['inputs', inputs],
      ['annotations', annotationsOf(entity)],
    ];
    triggers.set(name, dropEmpty(new Map(members)));
  }
  return triggers;
}

async function feedConfiguration(deployer: Deployer, feed: string, trigger: string): Promise<JsonMap> {
  try {
    const answer = await tellFeed(deployer, feed, trigger, 'READ', new Map(), true);
    return asMap(asMap(answer).get('config'));
  } catch (error) {
    throw clientError(error);
  }
}

async function exportRules(deployer: Deployer, projectName: string): Promise<JsonMap> {
  const rules: JsonMap = new Map();
  for (const row of (await listAll(deployer, 'rules')).filter((entity) => isOf(entity, projectName))) {
    const name = memberText(row, 'name');
    const entity = (await find(deployer, routes.rule(name))) ?? row;
    const trigger = asMap(entity.get('trigger'));
    const action = asMap(entity.get('action'));
    const [, ...packagePath] = memberText(action, 'path').split('/');
    const members: [string, Json][] = [
      ['trigger', memberText(trigger, 'name')],
      ['action', [...packagePath, memberText(action, 'name')].join('/')],
      ['annotations', annotationsOf(entity)],
    ];
    rules.set(name, dropEmpty(new Map(members)));
  }
  return rules;
}

/** Routes whose actions are in an exported package; a platform without a gateway has none. */
async function exportApis(deployer: Deployer, packages: Map<string, JsonMap>): Promise<void> {
  let answer: Json;
  try {
    answer = await callGateway(deployer.client, deployer.settings, 'GET', {});
  } catch (error) {
    if (error instanceof WskError && error.exitCode === notFound) return;
    throw clientError(error);
  }
  for (const api of apisOf(answer)) {
    const document = asMap(api.get('apidoc'));
    for (const { path, verb } of operationsOf(api)) {
      const backend = asMap(asMap(asMap(asMap(document.get('paths')).get(path)).get(verb)).get('x-openwhisk'));
      const members = packages.get(memberText(backend, 'package') || 'default');
      const actionName = memberText(backend, 'action');
      if (!members || !hasAction(members, actionName)) continue;
      const title = memberText(asMap(document.get('info')), 'title');
      const names = [title, memberText(document, 'basePath').replace(/^\//, ''), path.replace(/^\//, ''), actionName];
      const response = memberText(backend, 'url').split('.').pop() ?? '';
      setAt(
        members,
        ['apis', ...names],
        new Map([
          ['method', verb.toUpperCase()],
          ['response', response],
        ]),
      );
    }
  }
}

function hasAction(members: JsonMap, name: string): boolean {
  return asMap(members.get('actions')).has(name) || asMap(members.get('sequences')).has(name);
}

function setAt(map: JsonMap, [first = '', ...rest]: string[], value: Json): void {
  if (rest.length === 0) map.set(first, value);
  else {
    const inner = asMap(map.get(first));
    setAt(inner, rest, value);
    map.set(first, inner);
  }
}
