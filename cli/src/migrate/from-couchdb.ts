import type { JsonObject } from '@gpuwhisk/common/json';
import { TargetKinds } from './bodies.js';
import { DocumentCarrier, entityTypeOf, type DocumentOptions } from './document-carrier.js';
import { openCouchDatabase, openRawTarget, type CouchDatabase, type RawTarget } from './endpoints.js';
import { each, RefusedError, type Server } from './http.js';
import type { EntityType, Progress, Report } from './report.js';
import { isObject, objectsOf, textOf } from './values.js';

/** How databases are carried. */
interface CouchOptions extends DocumentOptions {
  /** CouchDB. */
  source: Server;
  /** The platform's API, with an operator's key. */
  target: Server;
  /** Of the databases' names. */
  prefix: string;
  identities: boolean;
  activations: boolean;
  /** Only these; none: all. */
  namespaces: readonly string[];
  concurrency: number;
}

/** Bytes of records in one request, about. */
const batchBytes = 8 * 1024 * 1024;
const limitsSuffix = '/limits';

/** Copies the documents of OpenWhisk's databases. Throws RefusedError, UnreachableError. */
export async function migrateFromCouchdb(options: CouchOptions, report: Report, progress: Progress): Promise<void> {
  const { prefix, concurrency } = options;
  const target = openRawTarget(options.target);
  const carrier = new DocumentCarrier(target, report, new TargetKinds(await options.target.json('GET', '/')), options);
  const open = (name: string): CouchDatabase => openCouchDatabase(options.source, prefix + name);
  const isWanted = (namespace: string): boolean =>
    options.namespaces.length === 0 || options.namespaces.includes(namespace);

  if (options.identities) {
    const source = open('subjects');
    await carrier.look('subjects');
    progress.begin('identities', await source.count());
    for await (const page of source.pages()) {
      await each(page, concurrency, async (document) => {
        const type = identityType(document, isWanted);
        if (type !== undefined) await carrier.carry({ database: 'subjects', type, document, source });
        progress.step();
      });
    }
  }

  const source = open('whisks');
  await carrier.look('whisks');
  await eachPage(source, 'entities', options.namespaces, progress, async (page) => {
    await each(page, concurrency, async (document) => {
      const entityType = entityTypeOf(document);
      const id = textOf(document._id);
      if (entityType === undefined) report.fail('action', id, 'it is no entity: its document has no known type');
      else {
        await carrier.carry({ database: 'whisks', type: shownType(entityType, document), document, source });
        if (entityType === 'trigger') report.noteFeed(id, document.annotations);
      }
      progress.step();
    });
  });

  if (!options.activations) return;
  const there = options.dryRun ? await target.ids('activations') : undefined;
  await eachPage(open('activations'), 'activations', options.namespaces, progress, async (page) => {
    const records = page.filter(({ activationId }) => activationId !== undefined).map(withoutRevision);
    for (const batch of batches(records)) {
      if (there === undefined) await carryRecords(target, batch, report);
      else {
        const missing = batch.filter(({ _id: id }) => !there.has(textOf(id))).length;
        report.add('activation', 'created', missing);
        report.add('activation', 'equal', batch.length - missing);
      }
      progress.step(batch.length);
    }
  });
}

/** Calls `use` with each page of a database, or of what it has of some namespaces. */
async function eachPage(
  source: CouchDatabase,
  part: string,
  namespaces: readonly string[],
  progress: Progress,
  use: (page: JsonObject[]) => Promise<void>,
): Promise<void> {
  progress.begin(part, namespaces.length === 0 ? await source.count() : undefined);
  const parts = namespaces.length === 0 ? [undefined] : namespaces.map((namespace) => `${namespace}/`);
  for (const under of parts) for await (const page of source.pages(under)) await use(page);
}

/** The type of a document of the subjects database; undefined if it is not to be carried. */
function identityType(document: JsonObject, isWanted: (namespace: string) => boolean): EntityType | undefined {
  const id = textOf(document._id);
  if (id.endsWith(limitsSuffix)) return isWanted(id.slice(0, -limitsSuffix.length)) ? 'limits' : undefined;
  if (document.subject === undefined) return undefined;
  return objectsOf(document.namespaces).some(({ name }) => isWanted(textOf(name))) ? 'subject' : undefined;
}

function shownType(type: 'action' | 'package' | 'trigger' | 'rule', { exec, binding }: JsonObject): EntityType {
  if (type === 'action' && isObject(exec) && exec.kind === 'sequence') return 'sequence';
  if (type === 'package' && isObject(binding) && Object.keys(binding).length > 0) return 'binding';
  return type;
}

/** Records together; one by one where they are refused together. */
async function carryRecords(target: RawTarget, records: JsonObject[], report: Report): Promise<void> {
  try {
    const created = await target.createMany('activations', records);
    report.add('activation', 'created', created);
    report.add('activation', 'equal', records.length - created);
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error;
    const [first] = records;
    if (records.length > 1) for (const record of records) await carryRecords(target, [record], report);
    else if (first !== undefined) report.fail('activation', textOf(first._id), error.message);
  }
}

function withoutRevision(document: JsonObject): JsonObject {
  const fields = { ...document };
  delete fields._rev;
  return fields;
}

/** Parts of a list whose JSON is of about `batchBytes` at most. */
function* batches(records: readonly JsonObject[]): Generator<JsonObject[]> {
  let batch: JsonObject[] = [];
  let bytes = 0;
  for (const record of records) {
    const size = JSON.stringify(record).length;
    if (batch.length > 0 && bytes + size > batchBytes) {
      yield batch;
      [batch, bytes] = [[], 0];
    }
    batch.push(record);
    bytes += size;
  }
  if (batch.length > 0) yield batch;
}
