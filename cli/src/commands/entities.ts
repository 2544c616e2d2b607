import { valueOf } from '../args/parameters.js';
import { ownNamespace, parseQualifiedName } from '../args/qualified-name.js';
import { encodePath, query } from '../client/api-host.js';
import { argumentError, WskError, wrapError } from '../errors.js';
import { asMap, asText, type Json, type JsonMap } from '../json/json.js';
import { conform, hasMember, memberOf, type Shape } from '../shapes.js';
import { stdout } from '../terminal.js';
import { checkArgs, type CommandContext } from './command.js';
import { annotationsOf, printList, type ListFormat } from './lists.js';

/** What commands about packages, triggers and rules differ in. */
export interface EntityKind {
  /** As messages have it: `package`. */
  noun: string;
  /** As paths have it: `packages`. */
  collection: string;
  shape: Shape;
  format: ListFormat;
}

/** Where the one entity that a command is about is found. */
export interface Target {
  namespace: string;
  name: string;
  /** Below the namespace: `packages/p`. */
  route: string;
}

/** @throws WskError if `name` is no name. */
export function targetOf(kind: EntityKind, name: string): Target {
  const { namespace, path } = parseQualifiedName(name);
  return { namespace, name: path, route: `${kind.collection}/${encodePath(path)}` };
}

/** Reads one entity as the server has it. */
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

/** Lists entities a page at a time; `complete` adds to them what the server's list lacks. */
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

/** The feed action that an entity's `feed` annotation names; empty if there is none. */
export function feedOf(entity: JsonMap): string {
  const feed = valueOf(annotationsOf(entity), 'feed');
  return typeof feed === 'string' ? feed : '';
}

/** Members of a request's body; lists without anything in them are left out. */
export function body(members: Record<string, Json | undefined>): JsonMap {
  const given = Object.entries(members).filter(
    (member): member is [string, Json] =>
      member[1] !== undefined && !(Array.isArray(member[1]) && member[1].length === 0),
  );
  return new Map(given);
}

/** What a command that prints one line of success prints. */
export function printDone(done: string, kind: string, name: string): void {
  stdout.print(`${stdout.ok} ${done} ${kind} ${stdout.bold(name)}\n`);
}

/** `-s`, of commands that can print two lines instead of a whole entity. */
export const summaryFlag = (noun: string, note: string) =>
  ({ name: 'summary', short: 's', type: 'bool', help: `summarize ${noun} details${note}` }) as const;

/** `asText` of a member. */
export const textOf = (entity: JsonMap, member: string): string => asText(entity.get(member));
