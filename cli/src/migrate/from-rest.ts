import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { actionBody, noRenaming, packageBody, ruleBody, TargetKinds, triggerBody, type Renaming } from './bodies.js';
import { fullName, localName, openNamespace, type Collection, type Namespace } from './endpoints.js';
import { each, RefusedError, type Server } from './http.js';
import type { EntityType, Progress, Report } from './report.js';
import { carryRoutes, RestCarrier, type Load, type Pair } from './rest-carrier.js';
import { isObject, textOf } from './values.js';

/** Two API servers, each seen with the key of one namespace. */
interface ServerPair {
  source: Server;
  target: Server;
}

/** Options of copying entities. */
interface RestOptions {
  servers: readonly ServerPair[];
  /** Source kind to target kind. */
  kinds: ReadonlyMap<string, string>;
  concurrency: number;
  dryRun: boolean;
  overwrite: boolean;
}

/** A row of a list at the source. */
interface Row {
  pair: Pair;
  row: JsonObject;
}

/** An entity to be copied whose body is not read yet. */
interface Found {
  pair: Pair;
  entity: JsonObject;
}

/** Copies namespaces over the API: an entity after those it refers to. Throws RefusedError, UnreachableError. */
export async function migrateFromRest(options: RestOptions, report: Report, progress: Progress): Promise<void> {
  const { servers, concurrency } = options;
  const pairs: Pair[] = [];
  for (const { source, target } of servers) {
    pairs.push({ source: await openNamespace(source), target: await openNamespace(target) });
  }
  const names = new Map(pairs.map(({ source, target }) => [source.name, target.name]));
  const renaming: Renaming = {
    namespace: (name) => names.get(name) ?? name,
    kind: (kind) => options.kinds.get(kind) ?? kind,
  };
  const first = servers[0];
  const kinds = new TargetKinds(first === undefined ? null : await first.target.json('GET', '/'));
  const carrier = new RestCarrier(report, kinds, options);
  await carrier.look(pairs.map(({ target }) => target));

  const rowsOf = async (collection: Collection): Promise<Row[]> => {
    const rows: Row[] = [];
    for (const pair of pairs) for (const row of await pair.source.list(collection)) rows.push({ pair, row });
    return rows;
  };
  /** Reads the rows' entities at the source and passes them on; reports those that cannot be read. */
  const carryRows = async (
    type: EntityType,
    collection: Collection,
    rows: readonly Row[],
    use: (found: Found) => Promise<void>,
  ): Promise<void> => {
    progress.begin(`${type}s`, rows.length);
    await each(rows, concurrency, async ({ pair, row }) => {
      await orReport(report, type, row, async () => {
        await use({ pair, entity: await pair.source.get(collection, localName(row)) });
      });
      progress.step();
    });
  };
  const sourceParameters = new InheritedParameters();
  const targetParameters = new InheritedParameters();

  const packages = await rowsOf('packages');
  const isBinding = ({ row }: Row): boolean => isObject(row.binding) && Object.keys(row.binding).length > 0;
  const plain = packages.filter((one) => !isBinding(one));
  await carryRows('package', 'packages', plain, async ({ pair, entity }) => {
    sourceParameters.set(pair.source, localName(entity), entity.parameters);
    const body = packageBody(entity, undefined, renaming);
    const bodyOf = async (found: JsonObject): Promise<JsonObject> => packageBody(found, undefined, noRenaming);
    await carrier.carry({ pair, type: 'package', collection: 'packages', entity, body, bodyOf });
  });

  const actionLoad = async ({ pair, entity }: Found, type: 'action' | 'sequence'): Promise<Load> => {
    const [packageName, name] = localName(entity).split('/');
    const inherited = (namespace: Namespace, parameters: InheritedParameters): Promise<JsonValue | undefined> =>
      name === undefined || packageName === undefined
        ? Promise.resolve(undefined)
        : parameters.get(namespace, packageName);
    const body = actionBody(entity, await inherited(pair.source, sourceParameters), renaming);
    const bodyOf = async (found: JsonObject): Promise<JsonObject> =>
      actionBody(found, await inherited(pair.target, targetParameters), noRenaming);
    return { pair, type, collection: 'actions', entity, body, bodyOf };
  };
  const sequences: Found[] = [];
  await carryRows('action', 'actions', await rowsOf('actions'), async (found) => {
    if (isObject(found.entity.exec) && found.entity.exec.kind === 'sequence') sequences.push(found);
    else await carrier.carry(await actionLoad(found, 'action'));
  });

  const providers = new Map<string, string>();
  await carryRows('binding', 'packages', packages.filter(isBinding), async ({ pair, entity }) => {
    const provider = providerOf(entity);
    providers.set(fullName(entity), `${provider.namespace}/${provider.name}`);
    const inherited = await sourceParameters.get(pair.source, provider.name, provider.namespace);
    const body = packageBody(entity, inherited, renaming);
    const bodyOf = async (found: JsonObject): Promise<JsonObject> => {
      const { namespace, name } = providerOf(found);
      if (name === '') return packageBody(found, undefined, noRenaming);
      return packageBody(found, await targetParameters.get(pair.target, name, namespace), noRenaming);
    };
    await carrier.carry({ pair, type: 'binding', collection: 'packages', entity, body, bodyOf });
  });

  progress.begin('sequences', sequences.length);
  for (const group of sequenceGroups(sequences, providers)) {
    await each(group, concurrency, async (found) => {
      await orReport(report, 'sequence', found.entity, async () => carrier.carry(await actionLoad(found, 'sequence')));
      progress.step();
    });
  }

  await carryRows('trigger', 'triggers', await rowsOf('triggers'), async ({ pair, entity }) => {
    report.noteFeed(fullName(entity), entity.annotations);
    const body = triggerBody(entity, renaming);
    const bodyOf = async (found: JsonObject): Promise<JsonObject> => triggerBody(found, noRenaming);
    await carrier.carry({ pair, type: 'trigger', collection: 'triggers', entity, body, bodyOf });
  });
  await carryRows('rule', 'rules', await rowsOf('rules'), async ({ pair, entity }) => {
    const body = ruleBody(entity, renaming);
    const bodyOf = async (found: JsonObject): Promise<JsonObject> => ruleBody(found, noRenaming);
    await carrier.carry({ pair, type: 'rule', collection: 'rules', entity, body, bodyOf });
  });

  progress.begin('API routes', undefined);
  for (const [at, { source, target }] of servers.entries()) {
    const pair = pairs[at];
    if (pair === undefined) continue;
    const named = {
      source: { name: pair.source.name, server: source },
      target: { name: pair.target.name, server: target },
    };
    await carryRoutes(named, { ...options, renamed: (name) => names.get(name) }, report);
  }
}

/** Does `work`; reports an entity that the source refuses. */
async function orReport(report: Report, type: EntityType, row: JsonObject, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error;
    report.fail(type, fullName(row), `the source does not show it: ${error.message}`);
  }
}

function providerOf({ binding }: JsonObject): { namespace: string; name: string } {
  return isObject(binding)
    ? { namespace: textOf(binding.namespace), name: textOf(binding.name) }
    : { namespace: '', name: '' };
}

/** The parameters of packages, which the server merges into the entities of the package; each package is read once. */
class InheritedParameters {
  private readonly byPackage = new Map<string, Promise<JsonValue | undefined>>();

  set(namespace: Namespace, packageName: string, parameters: JsonValue | undefined): void {
    this.byPackage.set(`${namespace.name}/${packageName}`, Promise.resolve(parameters));
  }

  /** Throws RefusedError, UnreachableError. */
  get(reader: Namespace, packageName: string, namespace = reader.name): Promise<JsonValue | undefined> {
    const key = `${namespace}/${packageName}`;
    let parameters = this.byPackage.get(key);
    if (parameters === undefined) {
      parameters = reader.get('packages', packageName, namespace).then((entity) => entity.parameters);
      this.byPackage.set(key, parameters);
    }
    return parameters;
  }
}

/**
 * Sequences in groups, each after the sequences that its members contain. Sequences that contain each other come last,
 * together: the target reports the error. `providers` has the package of each binding, both as full names.
 */
function sequenceGroups<Item extends { entity: JsonObject }>(
  items: readonly Item[],
  providers: ReadonlyMap<string, string>,
): Item[][] {
  let left: readonly Item[] = items;
  const groups: Item[][] = [];
  while (left.length > 0) {
    const waiting = new Set(left.map(({ entity }) => fullName(entity)));
    const isReady = ({ entity }: Item): boolean =>
      componentsOf(entity).every((name) => !waiting.has(behindBinding(name, providers)));
    const ready = left.filter(isReady);
    groups.push(ready.length > 0 ? ready : [...left]);
    left = ready.length > 0 ? left.filter((item) => !isReady(item)) : [];
  }
  return groups;
}

function componentsOf({ exec }: JsonObject): string[] {
  if (!isObject(exec) || !Array.isArray(exec.components)) return [];
  return exec.components.map((one) =>
    (isObject(one) ? `${textOf(one.path)}/${textOf(one.name)}` : textOf(one)).replace(/^\//, ''),
  );
}

function behindBinding(name: string, providers: ReadonlyMap<string, string>): string {
  const slash = name.lastIndexOf('/');
  const provider = providers.get(name.slice(0, slash));
  return provider === undefined ? name : provider + name.slice(slash);
}
