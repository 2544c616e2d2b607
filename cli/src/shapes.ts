import { asList, asMap, sortKeys, type Json, type JsonMap } from './json/json.js';

/**
 * One member of an entity as wsk prints it: members in this order, unknown ones dropped. `missing` replaces an absent
 * member. A member that equals it (an empty list counts) is left out unless `always` is set.
 */
interface Member {
  name: string;
  missing: Json;
  always?: boolean;
  read?(value: Json): Json;
}

/** The members of one kind of entity. */
export type Shape = Member[];

const member = (name: string, missing: Json, read?: Member['read']): Member =>
  read ? { name, missing, read } : { name, missing };
const always = (name: string, missing: Json, read?: Member['read']): Member => ({
  ...member(name, missing, read),
  always: true,
});
const within =
  (shape: Shape) =>
  (value: Json): Json =>
    conform(value, shape);
const eachWithin =
  (shape: Shape) =>
  (value: Json): Json =>
    asList(value).map(within(shape));

/** Applies `read` to the value of every key, in the order of the keys. */
function eachMember(read: (value: Json) => Json): (value: Json) => Json {
  return (value) => new Map([...asMap(sortKeys(value))].map(([key, item]) => [key, read(item)]));
}

const keyValues = eachWithin([always('key', ''), always('value', null)]);

const limitsShape: Shape = [
  member('timeout', null),
  member('memory', null),
  member('logs', null),
  member('concurrency', null),
];

/** Actions. */
export const actionShape: Shape = [
  member('namespace', ''),
  member('name', ''),
  member('version', ''),
  member(
    'exec',
    null,
    within([
      member('kind', ''),
      member('code', null),
      member('image', ''),
      member('init', ''),
      member('main', ''),
      member('components', null),
      member('binary', null),
    ]),
  ),
  member('annotations', null, keyValues),
  member('delAnnotations', null),
  member('parameters', null, keyValues),
  member('limits', null, within(limitsShape)),
  member('error', ''),
  member('code', 0),
  member('publish', null),
  member('updated', 0),
  member('env', null, keyValues),
];

const responseShape: Shape = [
  always('status', ''),
  always('statusCode', 0),
  always('success', false),
  member('result', null),
];

/** Activation records. */
export const activationShape: Shape = [
  always('namespace', ''),
  always('name', ''),
  always('version', ''),
  always('subject', ''),
  always('activationId', ''),
  member('cause', ''),
  always('start', 0),
  always('end', 0),
  always('duration', 0),
  always('statusCode', 0),
  always('response', new Map(), within(responseShape)),
  always('logs', null),
  always('annotations', null, keyValues),
  member('publish', null),
];

/** Packages and bindings; `actions` and `feeds` are present only if one package is read. */
export const packageShape: Shape = [
  member('namespace', ''),
  member('name', ''),
  member('version', ''),
  member('publish', null),
  member('annotations', null, keyValues),
  member('parameters', null, keyValues),
  member('binding', null, within([member('namespace', ''), member('name', '')])),
  member('actions', null, eachWithin(actionShape)),
  member('feeds', null, eachWithin(actionShape)),
  member('updated', 0),
];

/** Triggers. */
export const triggerShape: Shape = [
  member('namespace', ''),
  always('name', ''),
  member('version', ''),
  member('activationId', ''),
  member('annotations', null, keyValues),
  member('parameters', null, keyValues),
  member('limits', null, within(limitsShape)),
  member('publish', null),
  member('rules', null),
  member('updated', 0),
];

/** Rules. */
export const ruleShape: Shape = [
  member('namespace', ''),
  member('name', ''),
  member('version', ''),
  member('annotations', null, keyValues),
  always('status', ''),
  always('trigger', null),
  always('action', null),
  member('publish', null),
  member('updated', 0),
];

const apiParameters = eachWithin([
  always('name', ''),
  always('in', ''),
  member('description', ''),
  member('required', false),
  member('type', ''),
  member('format', ''),
  member('allowEmptyValue', false),
  member('items', null),
  member('collectionFormat', ''),
  member('default', null),
  member('maximum', 0),
  member('exclusiveMaximum', false),
  member('minimum', 0),
  member('exclusiveMinimum', false),
  member('maxLength', 0),
  member('minLength', 0),
  member('pattern', ''),
  member('maxItems', 0),
  member('minItems', 0),
  member('uniqueItems', false),
  member('multipleOf', 0),
  member('enum', null),
  member('$ref', ''),
]);

const operation = within([
  always('operationId', ''),
  member('parameters', null, apiParameters),
  always('responses', null),
  member(
    'x-openwhisk',
    null,
    within([always('action', ''), always('namespace', ''), always('package', ''), always('url', '')]),
  ),
]);

/** The methods of an API's path, in the order in which wsk prints them. */
export const apiVerbs = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch'];

const apiPath = within([
  ...apiVerbs.map((verb) => member(verb, null, operation)),
  member('parameters', null, apiParameters),
]);

/** The swagger document of an API. */
const swaggerShape: Shape = [
  member('swagger', ''),
  member('basePath', ''),
  member('info', null, within([member('title', ''), member('version', '')])),
  member('paths', null, eachMember(apiPath)),
  member('securityDefinitions', null),
  member('security', null),
  member('x-ibm-configuration', null),
  member('x-ibm-rate-limit', null),
];

/** An API in the format of the gateway's management. */
export const apiShape: Shape = [
  always('namespace', ''),
  always('gwApiUrl', ''),
  always('gwApiActivated', false),
  always('tenantId', ''),
  member('apidoc', null, within(swaggerShape)),
];

/** The entity as wsk prints it. */
export function conform(value: Json, shape: Shape): JsonMap {
  const members: JsonMap = new Map();
  for (const one of shape) {
    const read = readMember(asMap(value), one);
    if (one.always || !isMissing(read, one)) members.set(one.name, read);
  }
  return members;
}

/**
 * One member of an entity, also if it is absent; undefined if the shape has no member of that name. Case is ignored.
 */
export function memberOf(value: Json, shape: Shape, name: string): Json | undefined {
  const found = findMember(shape, name);
  return found && readMember(asMap(value), found);
}

/** Whether the shape has such a member; case is ignored. */
export function hasMember(shape: Shape, name: string): boolean {
  return findMember(shape, name) !== undefined;
}

function findMember(shape: Shape, name: string): Member | undefined {
  return shape.find((one) => one.name.toLowerCase() === name.toLowerCase());
}

function readMember(entity: JsonMap, one: Member): Json {
  const given = entity.get(one.name) ?? null;
  if (given === null) return one.missing instanceof Map && one.read ? one.read(one.missing) : one.missing;
  return one.read ? one.read(given) : sortKeys(given);
}

function isMissing(value: Json, one: Member): boolean {
  if (value === null || value === one.missing) return true;
  if (one.name === 'result') return false;
  return Array.isArray(value) ? value.length === 0 : value instanceof Map && value.size === 0 && !one.read;
}
