import { createHash } from 'node:crypto';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { DatabaseName } from './endpoints.js';
import { RefusedError, each, type Server } from './http.js';
import type { EntityType, Report, Progress } from './report.js';
import { isObject, objectsOf, sameJson, textOf } from './values.js';
import { TargetKinds } from './bodies.js';
import { openCouchDatabase, openRawTarget, type CouchDatabase, type RawTarget } from './endpoints.js';

/** Options of copying documents. */
interface DocumentOptions {
  dryRun: boolean;
  overwrite: boolean;
  /** Source kind to target kind. */
  kinds: ReadonlyMap<string, string>;
}

/** A document to be copied. */
interface DocumentLoad {
  database: Exclude<DatabaseName, 'activations'>;
  type: EntityType;
  /** In CouchDB's format. */
  document: JsonObject;
  /** Database of its attachment. */
  source: CouchDatabase;
}

/** Copies documents to the target unchanged, and reports each. */
class DocumentCarrier {
  private readonly present: Record<DocumentLoad['database'], Set<string>> = { subjects: new Set(), whisks: new Set() };

  constructor(
    private readonly target: RawTarget,
    private readonly report: Report,
    private readonly targetKinds: TargetKinds,
    private readonly options: DocumentOptions,
  ) {}

  /** Reads the list of the target's documents. Throws RefusedError, UnreachableError. */
  async look(database: DocumentLoad['database']): Promise<void> {
    this.present[database] = await this.target.ids(database);
  }

  /** Copies one document; reports a document that cannot be copied. Throws UnreachableError. */
  async carry(load: DocumentLoad): Promise<void> {
    const id = textOf(load.document._id);
    try {
      await this.place(load, id);
    } catch (error) {
      if (!(error instanceof RefusedError || error instanceof CodeError)) throw error;
      this.report.fail(load.type, id, error.message);
    }
  }

  private async place({ database, type, document, source }: DocumentLoad, id: string): Promise<void> {
    const { report, target, options } = this;
    let wanted = this.withKind(withoutInternals(document));
    const kind = isObject(wanted.exec) ? textOf(wanted.exec.kind) : undefined;
    const problem = kind === undefined ? undefined : this.targetKinds.problem(kind);
    if (problem !== undefined) return report.fail(type, id, problem);

    const code = codeReference(wanted);
    let bytes: Buffer | undefined;
    if (code !== undefined && code.digest === undefined) {
      bytes = await source.attachment(id, code.name);
      wanted = withDigest(wanted, code, bytes);
    }
    const found = this.present[database].has(id) ? await target.get(database, id) : undefined;
    if (found !== undefined) {
      const other = entityTypeOf(found);
      if (database === 'whisks' && other !== entityTypeOf(document)) {
        return report.fail(type, id, `its name is taken at the target by a ${other ?? 'document of another sort'}`);
      }
      if (sameJson(wanted, withoutInternals(found))) return report.add(type, 'equal');
      if (!options.overwrite) {
        return report.fail(type, id, 'the target has another one of this name (--overwrite replaces it)');
      }
    }
    report.noteCiphers(id, document.parameters);
    if (!options.dryRun) {
      if (code !== undefined) bytes ??= await source.attachment(id, code.name);
      if (code?.digest?.startsWith('sha256-') === true && bytes !== undefined && digestOf(bytes) !== code.digest) {
        throw new CodeError('its code is not what its document says: the digests differ');
      }
      await target.put(database, {
        ...wanted,
        ...(found !== undefined && { _rev: found._rev ?? null }),
        ...(code !== undefined &&
          bytes !== undefined && {
            _attachments: { [code.name]: { content_type: code.contentType, data: bytes.toString('base64') } },
          }),
      });
    }
    report.add(type, found === undefined ? 'created' : 'replaced');
  }

  /** The document with its kind at the target. */
  private withKind(document: JsonObject): JsonObject {
    const { exec } = document;
    if (!isObject(exec)) return document;
    const kind = this.options.kinds.get(textOf(exec.kind));
    if (kind === undefined) return document;
    const annotations = objectsOf(document.annotations).map((one) =>
      one.key === 'exec' ? { ...one, value: kind } : one,
    );
    return { ...document, exec: { ...exec, kind }, annotations };
  }
}

/** The type of a document of the whisks; old documents do not name their type. */
function entityTypeOf(document: JsonObject): 'action' | 'package' | 'trigger' | 'rule' | undefined {
  const { entityType, exec, binding, trigger, parameters } = document;
  if (entityType === 'action' || entityType === 'package' || entityType === 'trigger' || entityType === 'rule') {
    return entityType;
  }
  if (entityType !== undefined) return undefined;
  if (exec !== undefined) return 'action';
  if (isObject(binding)) return 'package';
  if (trigger !== undefined) return 'rule';
  return parameters === undefined ? undefined : 'trigger';
}

function withoutInternals(document: JsonObject): JsonObject {
  const fields = { ...document };
  delete fields._rev;
  delete fields._attachments;
  return fields;
}

/** Reference to code that is stored as an attachment of its document. */
interface CodeReference {
  /** The field of `exec` that refers to it; Java actions once had `jar`. */
  field: 'code' | 'jar';
  /** The name of the attachment. */
  name: string;
  contentType: string;
  /** `sha256-<hex>`; old documents have none. */
  digest: string | undefined;
}

/** Thrown for code that is missing in CouchDB, or differs from the document's digest. */
class CodeError extends Error {
  override name = 'CodeError';
}

/** Reference to the code of an action's document; undefined if the document contains the code. Throws CodeError. */
function codeReference({ exec }: JsonObject): CodeReference | undefined {
  if (!isObject(exec)) return undefined;
  const field = exec.code === undefined ? 'jar' : 'code';
  const reference = exec[field];
  if (!isObject(reference)) return undefined;
  const full = textOf(reference.attachmentName);
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(full)?.[1];
  if (scheme === 'mem') return undefined;
  if (scheme !== undefined && scheme !== 'couch') {
    throw new CodeError(`its code is not in CouchDB but in another store ('${scheme}:')`);
  }
  return {
    field,
    name: scheme === undefined ? full : full.slice(scheme.length + 1),
    contentType: textOf(reference.attachmentType),
    digest: typeof reference.digest === 'string' ? reference.digest : undefined,
  };
}

/** The digest of code in OpenWhisk's format. */
function digestOf(bytes: Uint8Array): string {
  return `sha256-${createHash('sha256').update(bytes).digest('hex')}`;
}

/** The document with length and digest of its code, by which copies are compared. */
function withDigest(document: JsonObject, { field }: CodeReference, bytes: Uint8Array): JsonObject {
  const exec = isObject(document.exec) ? document.exec : {};
  const reference = isObject(exec[field]) ? exec[field] : {};
  const described = { ...reference, length: bytes.length, digest: digestOf(bytes) };
  return { ...document, exec: { ...exec, [field]: described } };
}

/** Options of copying databases. */
interface CouchOptions extends DocumentOptions {
  /** CouchDB. */
  source: Server;
  /** The platform's API, with an operator's key. */
  target: Server;
  /** Prefix of the databases' names. */
  prefix: string;
  identities: boolean;
  activations: boolean;
  /** The only namespaces to be copied; empty for all. */
  namespaces: readonly string[];
  concurrency: number;
}

/** Approximate size of the records of one request, bytes. */
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

/** Calls `use` with each page of a database, or of its documents of some namespaces. */
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

/** The type of a document of the subjects database; undefined if the document is not to be copied. */
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

/** Copies records in one request, or one by one if the target refuses that request. */
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

/** Parts of a list whose JSON has about `batchBytes` at most. */
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
