import { parseQualifiedName } from '../args/qualified-name.js';
import { encodePath } from '../client/transport.js';
import type { Client } from '../client/client.js';
import { messageOf, WskError } from '../errors.js';
import { asMap, asText, sortKeys, type Json, type JsonMap } from '../json/json.js';
import type { Settings } from '../settings.js';
import { bareError } from './manifest.js';

/** Dependencies of deploying and removing a project. */
export interface Deployer {
  client: Client;
  settings: Settings;
  /** The project's namespace; `_` is the key's own. */
  namespace: string;
  /** Printed with `--verbose` only. */
  info(message: string): void;
  warn(message: string): void;
}

const conflict = 409 - 256;
const notFound = 404 - 256;
const attempts = 3;
const retryAfterMs = 1000;

/** Repeats the call, after a second and at most twice, if another client changed the same entity at the same time. */
export async function withRetries<T>({ warn }: Deployer, call: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await call();
    } catch (error) {
      const isConflict =
        error instanceof WskError &&
        error.exitCode === conflict &&
        error.message.includes('Concurrent modification to resource detected');
      if (!isConflict || attempt === attempts) throw error;
      await new Promise((resolve) => setTimeout(resolve, retryAfterMs));
      warn(`Retrying [${attempt}] after error: [${error.message}]\n`);
    }
  }
}

/** The entity at a route of the project's namespace; undefined if there is none. */
export async function find({ client, namespace }: Deployer, route: string): Promise<JsonMap | undefined> {
  try {
    return asMap(await client.get(namespace, route));
  } catch (error) {
    if (error instanceof WskError && error.exitCode === notFound) return undefined;
    throw clientError(error);
  }
}

/** PUTs an entity; replaces an existing one. */
export async function put(
  deployer: Deployer,
  kind: string,
  name: string,
  route: string,
  entity: JsonMap,
): Promise<void> {
  await deploying(deployer, kind, name, () =>
    deployer.client.put(deployer.namespace, `${route}?overwrite=true`, entity),
  );
}

/** Runs a step for an entity, with lines for `--verbose` before and after it. */
export async function deploying<T>(deployer: Deployer, kind: string, name: string, call: () => Promise<T>): Promise<T> {
  deployer.info(`Deploying ${kind} [${name}] ...\n`);
  try {
    const result = await withRetries(deployer, call);
    deployer.info(`${kind} [${name}] has been successfully deployed.\n\n`);
    return result;
  } catch (error) {
    throw clientError(error);
  }
}

/** Deletes an entity if it exists. A binding whose package is gone can be deleted, but not read. */
export async function removeIfThere(deployer: Deployer, kind: string, name: string, route: string): Promise<void> {
  deployer.info(`Undeploying ${kind} [${name}]...\n`);
  try {
    await withRetries(deployer, () => deployer.client.delete(deployer.namespace, route));
  } catch (error) {
    if (!(error instanceof WskError) || error.exitCode !== notFound) throw clientError(error);
  }
  deployer.info(`${kind} [${name}] has been successfully undeployed.\n\n`);
}

/** A failed request, in wskdeploy's words. */
export function clientError(error: unknown): WskError {
  if (!(error instanceof WskError) || !error.showPrefix) throw error;
  const code = error.exitCode & 0xff;
  return bareError(`[ERROR_WHISK_CLIENT_ERROR]: Error code: ${code}: ${messageOf(error)}\n`);
}

/** All entities of a collection in the project's namespace, page by page. */
export async function listAll({ client, namespace }: Deployer, collection: string): Promise<JsonMap[]> {
  const pageSize = 200;
  const all: JsonMap[] = [];
  for (;;) {
    let page: Json;
    try {
      page = await client.get(namespace, `${collection}?limit=${pageSize}&skip=${all.length}`);
    } catch (error) {
      throw clientError(error);
    }
    const entities = Array.isArray(page) ? page.map(asMap) : [];
    all.push(...entities);
    if (entities.length < pageSize) return all;
  }
}

/** Routes of entities. */
export const routes = {
  package: (name: string): string => `packages/${encodePath(name)}`,
  action: (path: string): string => `actions/${encodePath(path)}`,
  trigger: (name: string): string => `triggers/${encodePath(name)}`,
  rule: (name: string): string => `rules/${encodePath(name)}`,
};

/** The text of a member. */
export const memberText = (entity: JsonMap, member: string): string => asText(entity.get(member));

/** Invokes a trigger's feed and waits for its answer. */
export function tellFeed(
  deployer: Deployer,
  feedName: string,
  trigger: string,
  lifecycleEvent: 'CREATE' | 'READ' | 'DELETE',
  parameters: JsonMap,
  result = false,
): Promise<Json> {
  const feed = parseQualifiedName(feedName);
  const lifecycle: [string, Json][] = [
    ['authKey', deployer.settings.auth],
    ['lifecycleEvent', lifecycleEvent],
    ['triggerName', `/${deployer.namespace}/${trigger}`],
  ];
  const body = sortKeys(new Map([...parameters, ...lifecycle]));
  const route = `actions/${encodePath(feed.path)}`;
  return withRetries(deployer, () => deployer.client.invoke(feed.namespace, route, body, { blocking: true, result }));
}
