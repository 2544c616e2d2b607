import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { sameBody, type TargetKinds } from './bodies.js';
import { fullName, localName, type Collection, type Namespace } from './endpoints.js';
import { each, RefusedError, type Server } from './http.js';
import type { EntityType, Report } from './report.js';
import { isObject, objectsOf, sameJson, textOf } from './values.js';

/** The namespace of a key at the source, and that of a key at the target. */
export interface Pair {
  source: Namespace;
  target: Namespace;
}

/** One entity to be copied. */
export interface Load {
  pair: Pair;
  type: EntityType;
  collection: Collection;
  /** As returned by the source. */
  entity: JsonObject;
  /** The body to be put at the target. */
  body: JsonObject;
  /** The body of a PUT that would make the target's present entity. */
  bodyOf(found: JsonObject): Promise<JsonObject>;
}

/** Handling of entities that differ at the target. */
interface CarryOptions {
  dryRun: boolean;
  overwrite: boolean;
}

const collections = ['packages', 'actions', 'triggers', 'rules'] as const satisfies Collection[];
const singular = { packages: 'package', actions: 'action', triggers: 'trigger', rules: 'rule' } as const;

/** Puts entities at the target, and reports each. */
export class RestCarrier {
  /** Entities of each target namespace: full name to collection. */
  private readonly present = new Map<string, Collection>();

  constructor(
    private readonly report: Report,
    private readonly kinds: TargetKinds,
    private readonly options: CarryOptions,
  ) {}

  /** Reads the list of the target's entities. Throws RefusedError, UnreachableError. */
  async look(targets: readonly Namespace[]): Promise<void> {
    for (const target of targets) {
      for (const collection of collections) {
        for (const row of await target.list(collection)) this.present.set(fullName(row), collection);
      }
    }
  }

  /** Copies one entity; reports an entity that the target refuses. Throws UnreachableError. */
  async carry(load: Load): Promise<void> {
    try {
      const { exec } = load.body;
      const problem = isObject(exec) ? this.kinds.problem(textOf(exec.kind)) : undefined;
      if (problem !== undefined) this.report.fail(load.type, fullName(load.entity), problem);
      else await this.placeWithoutSecrets(load);
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error;
      this.report.fail(load.type, fullName(load.entity), error.message);
    }
  }

  /**
   * Copies an entity without encrypted parameters, and reports those: an API accepts no value that another server has
   * encrypted.
   */
  private async placeWithoutSecrets(load: Load): Promise<void> {
    const given = objectsOf(load.body.parameters);
    const locked = given.filter(({ encryption }) => textOf(encryption) !== '' && encryption !== 'noop');
    if (load.body.parameters === undefined) return this.place(load);
    const keys = new Set(locked.map(({ key }) => textOf(key)));
    const open = (body: JsonObject): JsonObject => ({
      ...body,
      parameters: objectsOf(body.parameters)
        .filter(({ key }) => !keys.has(textOf(key)))
        // OpenWhisk stores plain text with encryption `noop`.
        .map((one) => (one.encryption === 'noop' ? withoutCipher(one) : one)),
    });
    await this.place({ ...load, body: open(load.body), bodyOf: async (found) => open(await load.bodyOf(found)) });
    if (keys.size === 0) return;
    const names = [...keys].map((key) => `'${key}'`).join(', ');
    const reason = `its encrypted parameters ${names} are to be given again, or migrated from CouchDB, which carries them`;
    this.report.lack(load.type, fullName(load.entity), reason);
  }

  private async place(load: Load): Promise<void> {
    const { report } = this;
    const { pair, type, collection, entity, body } = load;
    const name = localName(entity);
    const there = this.present.get(`${pair.target.name}/${name}`);
    if (there !== undefined && there !== collection) {
      report.fail(type, fullName(entity), `its name is taken at the target by a ${singular[there]}`);
      return;
    }
    if (there === undefined) {
      if (this.options.dryRun || (await this.create(load, name))) {
        if (!this.options.dryRun) await this.setStatus(load, name, 'active');
        report.add(type, 'created');
        return;
      }
    }
    const found = await pair.target.get(collection, name);
    if (sameBody(body, await load.bodyOf(found))) {
      // An interrupted migration may have left a rule active.
      if (statusOf(found) === statusOf(entity)) return report.add(type, 'equal');
      if (!this.options.dryRun) await this.setStatus(load, name, statusOf(found));
      return report.add(type, 'replaced');
    }
    if (!this.options.overwrite) {
      report.fail(type, fullName(entity), 'the target has another one of this name (--overwrite replaces it)');
      return;
    }
    if (!this.options.dryRun) {
      await pair.target.put(collection, name, body, true);
      await this.setStatus(load, name, statusOf(found));
    }
    report.add(type, 'replaced');
  }

  /** False if the entity was created meanwhile, perhaps by an attempt whose answer was lost. */
  private async create({ pair, collection, body }: Load, name: string): Promise<boolean> {
    try {
      await pair.target.put(collection, name, body, false);
      return true;
    } catch (error) {
      if (error instanceof RefusedError && error.status === 409 && error.message === 'resource already exists') {
        return false;
      }
      throw error;
    }
  }

  private async setStatus({ pair, collection, entity }: Load, name: string, now: string | undefined): Promise<void> {
    const wanted = statusOf(entity);
    if (collection === 'rules' && wanted !== undefined && wanted !== now) {
      await pair.target.setRuleStatus(name, wanted);
    }
  }
}

function withoutCipher(parameter: JsonObject): JsonObject {
  const plain = { ...parameter };
  delete plain.encryption;
  return plain;
}

/** `active` or `inactive` of a rule. */
function statusOf({ status }: JsonObject): string | undefined {
  return status === 'active' || status === 'inactive' ? status : undefined;
}

/** The namespace of a key at the source and at the target, by name and server. */
interface RoutePair {
  source: { name: string; server: Server };
  target: { name: string; server: Server };
}

/** Options of copying API routes. */
interface RouteOptions {
  concurrency: number;
  dryRun: boolean;
  overwrite: boolean;
  /** The target's name of a namespace; undefined if the namespace is not copied. */
  renamed(namespace: string): string | undefined;
}

/** Copies the API routes of a namespace, one document for each base path. Throws UnreachableError. */
export async function carryRoutes({ source, target }: RoutePair, options: RouteOptions, report: Report): Promise<void> {
  const documents = await documentsOf(source.server).catch((error: unknown) => {
    if (!(error instanceof RefusedError)) throw error;
    // An OpenWhisk without route management has no routes.
    if (error.status !== 404) {
      report.note('namespace', source.name, `its API routes, if there are any, cannot be read: ${error.message}`);
    }
    return [];
  });
  if (documents.length === 0) return;
  const there = await documentsOf(target.server).catch((error: unknown) => {
    if (!(error instanceof RefusedError)) throw error;
    return error;
  });
  await each(documents, options.concurrency, async (document) => {
    const basePath = textOf(document.basePath);
    const name = `${source.name}${basePath}`;
    if (there instanceof RefusedError) return report.fail('api', name, there.message);
    const wanted = moved(document, target.server.base.origin, options.renamed);
    const found = there.find((one) => one.basePath === basePath);
    if (sameJson(wanted, found)) return report.add('api', 'equal');
    if (found !== undefined && !options.overwrite) {
      return report.fail('api', name, 'the target has another one of this base path (--overwrite replaces it)');
    }
    try {
      if (!options.dryRun) await put(target.server, wanted);
      report.add('api', found === undefined ? 'created' : 'replaced');
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error;
      report.fail('api', name, error.message);
    }
  });
}

/** One of OpenWhisk's web actions that manage routes; `spaceguid` is the tenant, the key's uuid. */
function management(action: string, { user }: Server): string {
  const query = new URLSearchParams({ accesstoken: 'DUMMY TOKEN', spaceguid: user });
  return `web/whisk.system/apimgmt/${action}.http?${query.toString()}`;
}

async function documentsOf(server: Server): Promise<JsonObject[]> {
  const answer = await server.json('GET', management('getApi', server));
  const rows = isObject(answer) ? objectsOf(answer.apis) : [];
  return rows.flatMap(({ value }) => (isObject(value) && isObject(value.apidoc) ? [value.apidoc] : []));
}

async function put(server: Server, swagger: JsonObject): Promise<void> {
  await server.json('POST', management('createApi', server), {
    apidoc: { namespace: '_', swagger: JSON.stringify(swagger) },
  });
}

const webAction = /^https?:\/\/[^/]+\/api\/v1\/web\/([^/]+)(\/.*)$/;

/** The document with the new addresses of web actions in copied namespaces. */
function moved(document: JsonObject, origin: string, renamed: RouteOptions['renamed']): JsonObject {
  const change = (value: JsonValue): JsonValue => {
    if (Array.isArray(value)) return value.map(change);
    if (isObject(value)) return changeAll(value);
    const [, namespace = '', rest = ''] = typeof value === 'string' ? (webAction.exec(value) ?? []) : [];
    const name = renamed(namespace);
    return name === undefined ? value : `${origin}/api/v1/web/${name}${rest}`;
  };
  const changeAll = (object: JsonObject): JsonObject =>
    Object.fromEntries(
      Object.entries(object).map(([field, value]) => {
        const changed = change(value ?? null);
        if (field !== 'x-openwhisk' || !isObject(changed)) return [field, changed];
        const namespace = textOf(changed.namespace);
        return [field, { ...changed, namespace: renamed(namespace) ?? namespace }];
      }),
    );
  return changeAll(document);
}
