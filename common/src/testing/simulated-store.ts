import type { JsonValue } from '../json.js';
import { isJsonObject, withoutHalfPairsIn } from '../json.js';
import type { Clock } from '../system/clock.js';
import type { Random } from '../system/random.js';
import { randomFraction } from '../system/random.js';
import type {
  ArtifactStore,
  Attachment,
  DatabaseName,
  DocumentShape,
  NamedAttachment,
  StoredDocument,
  TextQuery,
  ViewQuery,
  ViewRow,
} from '../store/artifact-store.js';
import { DocumentConflictError, NoDocumentError, StoreWriteError } from '../store/artifact-store.js';
import { documentText, textsByQuery } from '../activations/record-texts.js';
import { decodeDocument, encodeDocument, encodeNewDocument, revisionOf } from '../store/document-codec.js';
import { endedBefore, hasExpired, emitRows, sharesValueOf, viewsOf } from '../store/views.js';
import { addBytes, namespaceOfDocument } from '../store/stored-bytes.js';
import type { NamespaceBytes } from '../store/stored-bytes.js';
import { parseRow, rangeOf, rowKey } from '../store/view-key.js';

export interface SimulatedStoreOptions {
  clock: Clock;
  random: Random;
  /** How long an operation takes, ms: uniform up to this. */
  latencyMs?: number;
}

/** A store in memory for simulations. */
export interface SimulatedStore extends ArtifactStore {
  /**
   * The process that uses the store dies: of the writes under way some took effect and some did not; none of the
   * promises given out settles any more. The store can be used on by the next process.
   */
  crash(): void;
}

/** A store in memory, whose operations take time on `clock` and whose writes take effect when that is over. */
export function simulatedStore(options: SimulatedStoreOptions): SimulatedStore {
  return new MemoryStore(options);
}

/** Records that are removed at once. */
const simulatedBatch = 3;

class MemoryStore implements SimulatedStore {
  private readonly documents = new Map<string, string>();
  private readonly attachments = new Map<string, Map<string, Attachment>>();
  private readonly stored: NamespaceBytes = new Map();
  /** Writes that were asked for and have not taken effect. */
  private underWay = new Set<() => void>();
  private life = 0;
  private closed = false;

  constructor(private readonly options: SimulatedStoreOptions) {}

  get(database: DatabaseName, id: string): Promise<StoredDocument> {
    return this.later(() => {
      const stored = this.documents.get(`${database} ${id}`);
      if (stored === undefined) throw new NoDocumentError(id);
      return decodeDocument(stored);
    });
  }

  put(database: DatabaseName, given: StoredDocument, attachments?: readonly NamedAttachment[]): Promise<string> {
    const document = withoutHalfPairsIn(given);
    const key = `${database} ${document._id}`;
    const copies = attachments?.map(
      ({ name, contentType, bytes }) => [name, { contentType, bytes: Uint8Array.from(bytes) }] as const,
    );
    return this.write(() => {
      const before = this.documents.get(key);
      const previous = before === undefined ? undefined : revisionOf(before);
      if (document._rev !== previous) throw new DocumentConflictError(document._id);
      const { revision, stored } = encodeDocument(document, previous);
      this.counting(database, document._id, () => {
        this.documents.set(key, stored);
        if (copies) this.attachments.set(key, new Map(copies));
      });
      return revision;
    });
  }

  createMany(database: DatabaseName, documents: readonly StoredDocument[]): Promise<boolean[]> {
    return this.write(() =>
      documents.map((document) => {
        const key = `${database} ${document._id}`;
        if (this.documents.has(key)) return false;
        const stored = encodeNewDocument(withoutHalfPairsIn(document));
        this.counting(database, document._id, () => this.documents.set(key, stored));
        return true;
      }),
    );
  }

  delete(database: DatabaseName, id: string, revision: string): Promise<void> {
    const key = `${database} ${id}`;
    return this.write(() => {
      const before = this.documents.get(key);
      if (before === undefined) throw new NoDocumentError(id);
      if (revisionOf(before) !== revision) throw new DocumentConflictError(id);
      this.counting(database, id, () => {
        this.documents.delete(key);
        this.attachments.delete(key);
      });
    });
  }

  list(database: DatabaseName, { after, limit }: { after?: string; limit: number }): Promise<StoredDocument[]> {
    return this.later(() => {
      const found = [...this.documents]
        .filter(([key]) => key.startsWith(`${database} `))
        .map(([, stored]) => decodeDocument(stored))
        .map((document) => ({ document, id: Buffer.from(document._id) }))
        .sort((one, other) => one.id.compare(other.id));
      const behind = after === undefined ? found : found.filter(({ id }) => id.compare(Buffer.from(after)) > 0);
      return behind.slice(0, limit).map(({ document }) => document);
    });
  }

  query(database: DatabaseName, query: ViewQuery): Promise<ViewRow[]> {
    return this.later(() => {
      const rows = this.rowsIn(database, query);
      if (query.descending) rows.reverse();
      const skip = query.skip ?? 0;
      const chosen = rows.slice(skip, query.limit === undefined ? undefined : skip + query.limit);
      return chosen.map(({ row, value }) => {
        // What is undefined is not there in a stored row.
        const found: ViewRow = { ...parseRow(row), value: JSON.parse(JSON.stringify(value)) as JsonValue };
        if (query.includeDocs) {
          const linked = isJsonObject(value) ? value._id : undefined;
          const stored = this.documents.get(`${database} ${typeof linked === 'string' ? linked : found.id}`);
          if (stored !== undefined) found.doc = decodeDocument(stored);
        }
        return found;
      });
    });
  }

  texts(database: DatabaseName, query: TextQuery): AsyncIterable<Uint8Array> {
    return textsByQuery(this, database, query);
  }

  async text(
    database: DatabaseName,
    id: string,
    as: DocumentShape,
    _reader: string,
    endedSince?: number,
  ): Promise<Uint8Array> {
    const document = await this.get(database, id);
    if (endedBefore(document, endedSince)) throw new NoDocumentError(id);
    return Buffer.from(documentText(document, as));
  }

  count(database: DatabaseName, query: Parameters<ArtifactStore['count']>[1]): Promise<number> {
    return this.later(() => this.rowsIn(database, query).length);
  }

  async *expire(beforeMs: number): AsyncIterable<number> {
    const everything = { view: 'activations', startKey: [], endKey: ['\uffff'] } as const;
    const rows = await this.query('activations', everything);
    const expired = rows.filter(({ key, value }) => hasExpired(value, Number(key[1]), beforeMs));
    for (let at = 0; at < expired.length; at += simulatedBatch) {
      const batch = expired.slice(at, at + simulatedBatch);
      const remove = (id: string): boolean =>
        this.counting('activations', id, () => this.documents.delete(`activations ${id}`));
      yield await this.write(() => batch.filter(({ id }) => remove(id)).length);
    }
  }

  getAttachment(database: DatabaseName, id: string, name: string): Promise<Attachment> {
    return this.later(() => {
      const attachment = this.attachments.get(`${database} ${id}`)?.get(name);
      if (!attachment) throw new NoDocumentError(`${id}/${name}`);
      return { contentType: attachment.contentType, bytes: Uint8Array.from(attachment.bytes) };
    });
  }

  close(): Promise<void> {
    this.closed = true;
    return Promise.resolve();
  }

  crash(): void {
    this.life++;
    for (const takeEffect of this.underWay) if (randomFraction(this.options.random) < 0.5) takeEffect();
    this.underWay = new Set();
    this.closed = false;
  }

  storedBytes(namespace: string): number {
    return this.stored.get(namespace) ?? 0;
  }

  storedNamespaces(): Iterable<[namespace: string, bytes: number]> {
    return this.stored;
  }

  /** Changes a document, and counts by how many bytes. */
  private counting<Result>(database: DatabaseName, id: string, change: () => Result): Result {
    const key = `${database} ${id}`;
    const bytes = (): number => {
      const attached = [...(this.attachments.get(key)?.values() ?? [])];
      return attached.reduce((sum, one) => sum + one.bytes.length, this.documents.get(key)?.length ?? 0);
    };
    const before = bytes();
    const result = change();
    addBytes(this.stored, namespaceOfDocument(database, id), bytes() - before);
    return result;
  }

  private rowsIn(
    database: DatabaseName,
    { view, startKey, endKey, endedSince }: Parameters<ArtifactStore['count']>[1],
  ): { row: Buffer; value: JsonValue }[] {
    if (!viewsOf[database].includes(view)) throw new Error(`database '${database}' has no view '${view}'`);
    const { start, end } = rangeOf(startKey, endKey);
    const found: { row: Buffer; value: JsonValue }[] = [];
    for (const [key, stored] of this.documents) {
      if (!key.startsWith(`${database} `)) continue;
      const document = decodeDocument(stored);
      const emitted = emitRows(database, document);
      for (const each of emitted) {
        const row = rowKey(each.key, document._id);
        if (each.view !== view || row.compare(start) < 0 || row.compare(end) >= 0) continue;
        const shared = sharesValueOf[view];
        const value = each.value ?? emitted.find((other) => other.view === shared)?.value ?? null;
        if (endedSince === undefined || !hasExpired(value, Number(each.key[1]), endedSince)) found.push({ row, value });
      }
    }
    return found.sort((one, other) => one.row.compare(other.row));
  }

  private write<Result>(apply: () => Result): Promise<Result> {
    if (this.closed) return Promise.reject(new StoreWriteError('the store is closed'));
    const takeEffect = (): void => {
      try {
        apply();
      } catch (error) {
        // A conflict without a caller to hear of it.
        if (!(error instanceof DocumentConflictError || error instanceof NoDocumentError)) throw error;
      }
    };
    this.underWay.add(takeEffect);
    return this.later(() => {
      this.underWay.delete(takeEffect);
      return apply();
    });
  }

  private later<Result>(run: () => Result): Promise<Result> {
    if (this.closed) return Promise.reject(new Error('the store is closed'));
    const { clock, random, latencyMs = 5 } = this.options;
    const life = this.life;
    return new Promise((resolve, reject) => {
      clock.setTimer(randomFraction(random) * latencyMs, () => {
        if (life !== this.life) return;
        try {
          resolve(run());
        } catch (error) {
          reject(error as Error);
        }
      });
    });
  }
}
