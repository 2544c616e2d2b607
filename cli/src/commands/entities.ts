import { annotationsOf, valueOf } from '../args/parameters.js';
import { ownNamespace, parseQualifiedName } from '../args/qualified-name.js';
import { encodePath, query } from '../client/transport.js';
import { checkArgs, type CommandContext } from '../command.js';
import { argumentError, wrapError, WskError } from '../errors.js';
import { asList, asMap, asText, type Json, type JsonMap } from '../json/json.js';
import { conform, hasMember, memberOf, type Shape } from '../shapes.js';
import { stdout } from '../terminal.js';

/** The differences between commands about packages, triggers and rules. */
export interface EntityKind {
  /** The kind's name in messages: `package`. */
  noun: string;
  /** The kind's name in paths: `packages`. */
  collection: string;
  shape: Shape;
  format: ListFormat;
}

/** Name and route of the one entity that a command is about. */
export interface Target {
  namespace: string;
  name: string;
  /** Below the namespace: `packages/p`. */
  route: string;
}

/** @throws WskError if `name` is not a valid name. */
export function targetOf(kind: EntityKind, name: string): Target {
  const { namespace, path } = parseQualifiedName(name);
  return { namespace, name: path, route: `${kind.collection}/${encodePath(path)}` };
}

/** Reads one entity as the server returns it. */
export async function read(
  { client }: CommandContext,
  kind: EntityKind,
  target: Target,
  options: { showUsage?: boolean } = {},
): Promise<JsonMap> {
  try {
    return asMap(await client.get(target.namespace, target.route));
  } catch (error) {
    throw wrapError(error, `Unable to get ${kind.noun} '${target.name}'`, options);
  }
}

/** The entity and the field that `get NAME [FIELD]` asks for. */
export function targetWithField({ args }: CommandContext, kind: EntityKind): { target: Target; field?: string } {
  checkArgs(args, 1, 2, `A ${kind.noun} name is required.`);
  const [name = '', field] = args;
  if (field === undefined) return { target: targetOf(kind, name) };
  if (!hasMember(kind.shape, field)) throw new WskError(`Invalid field filter '${field}'.`);
  return { target: targetOf(kind, name), field };
}

/** Prints an entity, or one field of it. */
export function printEntity(kind: EntityKind, { name }: Target, entity: JsonMap, field?: string): void {
  const got = `${stdout.ok} got ${kind.noun} ${stdout.bold(name)}`;
  stdout.print(field === undefined ? `${got}\n` : `${got}, displaying field ${stdout.bold(field)}\n`);
  stdout.printJson(field === undefined ? conform(entity, kind.shape) : (memberOf(entity, kind.shape, field) ?? null));
}

/** Deletes an entity and says so. */
export async function remove({ client }: CommandContext, kind: EntityKind, target: Target): Promise<void> {
  try {
    await client.delete(target.namespace, target.route);
  } catch (error) {
    throw wrapError(error, `Unable to delete ${kind.noun} '${target.name}'`);
  }
  stdout.print(`${stdout.ok} deleted ${kind.noun} ${stdout.bold(target.name)}\n`);
}

/** The namespace that `list [NAMESPACE]` names. */
export function namespaceArgument({ args }: CommandContext): string {
  checkArgs(args, 0, 1, 'An optional namespace is the only valid argument.');
  if (args[0] === undefined) return ownNamespace;
  const { namespace, path } = parseQualifiedName(args[0]);
  if (path === '') return namespace;
  throw argumentError(
    `An entity name, '${path}', was provided instead of a namespace. Valid namespaces are of the following format: /NAMESPACE.`,
  );
}

/** Lists entities a page at a time; `complete` adds members that the server's list lacks. */
export async function list(
  context: CommandContext,
  kind: EntityKind,
  complete: (namespace: string, entities: Json) => Promise<Json> = async (_, entities) => entities,
): Promise<void> {
  const { client, flags } = context;
  const namespace = namespaceArgument(context);
  const page = query({ limit: flags.int('limit'), skip: flags.int('skip') });
  let entities: Json;
  try {
    entities = await client.get(namespace, `${kind.collection}${page}`);
  } catch (error) {
    const shown = namespace === ownNamespace ? 'default' : namespace;
    throw wrapError(error, `Unable to obtain the list of ${kind.collection} for namespace '${shown}'`);
  }
  printList(await complete(namespace, entities), kind.format, flags.bool('name-sort'));
}

/** Prints a command's one line of success. */
export function printDone(done: string, kind: string, name: string): void {
  stdout.print(`${stdout.ok} ${done} ${kind} ${stdout.bold(name)}\n`);
}

/** `-s`, of commands that can print two lines instead of a whole entity. */
export const summaryFlag = (noun: string, note: string) =>
  ({ name: 'summary', short: 's', type: 'bool', help: `summarize ${noun} details${note}` }) as const;

/** `asText` of a member. */
export const textOf = (entity: JsonMap, member: string): string => asText(entity.get(member));

/** Format of a list of one kind of entity. */
interface ListFormat {
  title: string;
  row(entity: JsonMap): string;
  /** The key that `-n` sorts by. */
  sortKey(entity: JsonMap): string;
}

const fullName = (entity: JsonMap): string => `/${asText(entity.get('namespace'))}/${asText(entity.get('name'))}`;
const lowerCaseName = (entity: JsonMap): string =>
  `${asText(entity.get('namespace'))}${asText(entity.get('name'))}`.toLowerCase();

/** Sorts actions outside packages first, by name as it is written; then packaged ones. */
function actionSortKey(entity: JsonMap): string {
  const packaged = asText(entity.get('namespace')).includes('/');
  return packaged ? `1${lowerCaseName(entity)}` : `0${asText(entity.get('name'))}`;
}

export const listFormats = {
  actions: {
    title: 'actions',
    row: (entity) => `${fullName(entity).padEnd(70)} private ${asText(valueOf(annotationsOf(entity), 'exec'))}`,
    sortKey: actionSortKey,
  },
  packages: {
    title: 'packages',
    row: (entity) => `${fullName(entity).padEnd(70)} ${entity.get('publish') === true ? 'shared' : 'private'}`,
    sortKey: lowerCaseName,
  },
  triggers: {
    title: 'triggers',
    row: (entity) => `${fullName(entity).padEnd(70)} private`,
    sortKey: lowerCaseName,
  },
  rules: {
    title: 'rules',
    row: (entity) => `${fullName(entity).padEnd(70)} ${'private'.padEnd(20)} ${asText(entity.get('status'))}`,
    sortKey: lowerCaseName,
  },
} satisfies Record<string, ListFormat>;

/** Prints a title and a row for each entity, in the server's order or, with `sorted`, by name. */
export function printList(entities: Json, format: ListFormat, sorted: boolean): void {
  const list = asList(entities).map(asMap);
  if (sorted) list.sort((a, b) => (format.sortKey(a) < format.sortKey(b) ? -1 : 1));
  stdout.print(`${stdout.bold(`${format.title}\n`)}${list.map((entity) => `${format.row(entity)}\n`).join('')}`);
}

/**
 * Two lines about an entity: its name and description, and its parameters. Bound parameters are marked `*`, or `**` if
 * they are final. Without a `description` annotation the description lists the parameters.
 */
export function summaryOf(
  kind: string,
  entity: JsonMap,
  name = `/${asText(entity.get('namespace'))}/${asText(entity.get('name'))}`,
): string {
  const annotations = annotationsOf(entity);
  const names = parameterNames(entity, annotations);
  const description = asText(valueOf(annotations, 'description')) || describe(names.map(({ plain }) => plain));
  const shown = names.map(({ marked }) => marked).join(', ') || 'none defined';
  const colon = description === '' ? '' : ': ';
  return `${stdout.bold(kind)} ${name}${colon}${description}\n   (${stdout.bold('parameters')}: ${shown})\n`;
}

function parameterNames(entity: JsonMap, annotations: JsonMap[]): { plain: string; marked: string }[] {
  const bound = asList(entity.get('parameters')).map((item) => asText(asMap(item).get('key')));
  const described = asList(valueOf(annotations, 'parameters')).map((item) => asText(asMap(item).get('name')));
  const mark = valueOf(annotations, 'final') === true ? '**' : '*';
  const all = [...new Set([...bound, ...described])].filter((name) => name !== '').sort();
  return all.map((plain) => ({ plain, marked: bound.includes(plain) ? `${mark}${plain}` : plain }));
}

function describe(names: string[]): string {
  const last = names[names.length - 1];
  if (last === undefined) return '';
  if (names.length === 1) return `Returns a result based on parameter ${last}`;
  return `Returns a result based on parameters ${names.slice(0, -1).join(', ')} and ${last}`;
}
