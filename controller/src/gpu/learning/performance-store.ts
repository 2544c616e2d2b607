import { createHash } from 'node:crypto';
import type { DeviceMode } from '@gpuwhisk/common/gpu';
import type { StoredDocument, ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import type { Logger } from '@gpuwhisk/common/logging';
import { DocumentConflictError, NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';
import { gpuDocument } from '../state/gpu-documents.js';

/**
 * Kinds of documents: profiles of functions, curves of samples alone, trials of functions, slowdown samples, predictors, degradations beside
 * workloads, measured pairs and the models of their degradations, slowdowns on slices, faults of functions, the model of requests,
 * shares of sets, trials of sets, sets to be searched for, and decisions.
 */
export type DocumentKind =
  | 'profile'
  | 'curve'
  | 'trials'
  | 'samples'
  | 'model'
  | 'degradations'
  | 'pair-samples'
  | 'pair-model'
  | 'slices'
  | 'faults'
  | 'forecast'
  | 'quota'
  | 'set'
  | 'demand'
  | 'decisions';

/** The key of a document. */
interface DocumentKey {
  kind: DocumentKind;
  /** Unique within the kind. */
  name: string;
}

/** The content of a document. */
interface DocumentContent {
  /** The kind of GPU of the content; absent for content of no particular kind. */
  gpuType?: string;
  mode?: DeviceMode;
  text: string;
}

/** Prefix of the documents' ids. */
const documentPrefix = 'learned/';
/** Format of the texts. Documents of other formats are ignored. */
const format = 1;

/** The id of a key's document. Long names are cut and distinguished by their digest. */
export function documentId({ kind, name }: DocumentKey): string {
  const short = name.length <= 400 ? name : `${name.slice(0, 300)}~${digest(name)}`;
  return `${documentPrefix}${kind}/${short}`;
}

/** A document, without its revision. */
export function encodeDocument(key: DocumentKey, { gpuType, mode, text }: DocumentContent, at: number): StoredDocument {
  return {
    _id: documentId(key),
    kind: key.kind,
    name: key.name,
    format,
    at,
    ...(gpuType !== undefined && { gpuType }),
    ...(mode !== undefined && { mode }),
    sha256: digest(text),
    text,
  };
}

/** Reads a document of `encodeDocument`. Throws RangeError. */
function decodeDocument(document: StoredDocument): { key: DocumentKey; text: string } {
  const { kind, name, text, sha256 } = document;
  if (document.format !== format) {
    throw new RangeError(`its format is ${JSON.stringify(document.format)} instead of ${format}`);
  }
  if (typeof kind !== 'string' || typeof name !== 'string' || typeof text !== 'string') {
    throw new RangeError('it lacks fields');
  }
  if (sha256 !== digest(text)) throw new RangeError('it is damaged: its SHA-256 is another');
  return { key: { kind: kind as DocumentKind, name }, text };
}

const digest = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Dependencies of PerformanceStore. */
interface PerformanceStoreParts {
  store: ArtifactStore;
  clock: Clock;
  logger: Logger;
  /** Delay from a change to its write, ms; further changes during the delay are part of the same write. */
  saveMs: number;
  /** Whether this controller may write documents of a kind now; changes of other kinds are not kept. */
  mayWrite(kind: DocumentKind): boolean;
}

/** Counts of the writes. */
export interface SaveCounts {
  saved: number;
  failed: number;
  dropped: number;
}

/**
 * Takes the text of a stored document. If `isChanged`, newer data of the same name is in memory and must not be lost. Throws
 * an Error with the reason if the text cannot be used.
 */
export type TakeDocument = (text: string, name: string, isChanged: boolean) => void;

const pageSize = 200;
/** Most pending changes; changes of further documents are dropped. */
const maxWaiting = 20_000;
/** Most concurrent writes of documents. */
const writesAtOnce = 8;
const maxRetryMs = 60_000;
const closeMs = 5000;

interface Change {
  key: DocumentKey;
  /** Returns the content at the time of the write; undefined: the document is to be deleted. */
  read: (() => DocumentContent) | undefined;
}

/**
 * Stores performance data in documents of database `gpu`. Documents are written in the background, each at most once at a
 * time, so that no request waits. In a cluster the leader writes shared documents.
 */
export class PerformanceStore {
  private readonly waiting = new Map<string, Change>();
  private readonly revisions = new Map<string, string>();
  private timer: Timer | undefined;
  private readTimer: Timer | undefined;
  private writing: Promise<void> = Promise.resolve();
  private failures = 0;
  private closed = false;
  private isRead = false;
  readonly counts: SaveCounts = { saved: 0, failed: 0, dropped: 0 };

  constructor(private readonly parts: PerformanceStoreParts) {}

  /**
   * Reads the stored documents. Unusable ones are logged and ignored. If the store fails, the read is repeated after at most
   * a minute. Nothing is written before that; newer data is merged with what is read.
   */
  async open(takers: Readonly<Record<DocumentKind, TakeDocument>>): Promise<void> {
    this.readTimer?.cancel();
    this.isRead = false;
    try {
      await this.readAll(takers);
    } catch (error) {
      const { clock, logger } = this.parts;
      if (this.failures === 0)
        logger.error({ reason: String(error) }, 'performance data cannot be read; the read is repeated later');
      this.failures += 1;
      this.readTimer = clock.setBackgroundTimer(this.retryMs, () => void this.open(takers));
      return;
    }
    this.failures = 0;
    this.isRead = true;
    if (this.waiting.size > 0) this.flushLater();
  }

  private async readAll(takers: Readonly<Record<DocumentKind, TakeDocument>>): Promise<void> {
    for (let after = documentPrefix; !this.closed;) {
      const page = await this.parts.store.list('gpu', { after, limit: pageSize });
      const documents = page.filter(({ _id: id }) => id.startsWith(documentPrefix));
      for (const document of documents) this.take(document, takers);
      const last = documents.at(-1);
      if (last === undefined || documents.length < pageSize) return;
      after = last._id;
    }
  }

  private take(document: StoredDocument, takers: Readonly<Record<DocumentKind, TakeDocument>>): void {
    const { _id: id, _rev: revision } = document;
    if (typeof revision === 'string') this.revisions.set(id, revision);
    const change = this.waiting.get(id);
    // The data was deleted in memory meanwhile.
    if (change !== undefined && change.read === undefined) return;
    try {
      const { key, text } = decodeDocument(document);
      const take: TakeDocument | undefined = takers[key.kind];
      if (take === undefined) throw new RangeError(`its kind is '${key.kind}'`);
      take(text, key.name, change !== undefined);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.parts.logger.warn(
        { document: id, reason },
        'stored performance data cannot be used and will be measured again',
      );
    }
  }

  /** Schedules the write of a document; `read` is called at the time of the write. */
  save(key: DocumentKey, read: () => DocumentContent): void {
    this.note({ key, read });
  }

  /** Schedules the deletion of a document. */
  remove(key: DocumentKey): void {
    this.note({ key, read: undefined });
  }

  /** Writes pending changes for at most a few seconds. */
  async close(): Promise<void> {
    this.closed = true;
    this.timer?.cancel();
    this.readTimer?.cancel();
    // A write would overwrite stored documents that were not read.
    if (!this.isRead) return;
    const over = new Promise<void>((resolve) => {
      const timer = this.parts.clock.setBackgroundTimer(closeMs, resolve);
      void this.flush().then(() => {
        timer.cancel();
        resolve();
      });
    });
    await over;
    if (this.waiting.size === 0) return;
    this.parts.logger.warn({ documents: this.waiting.size }, 'some performance data could not be written');
  }

  private note(change: Change): void {
    if (!this.parts.mayWrite(change.key.kind)) return;
    const id = documentId(change.key);
    if (!this.waiting.has(id) && this.waiting.size >= maxWaiting) {
      this.counts.dropped += 1;
      return;
    }
    this.waiting.set(id, change);
    this.flushLater();
  }

  /** Delay of the next attempt, ms; it grows with each failure. */
  private get retryMs(): number {
    const { saveMs } = this.parts;
    return Math.max(saveMs, Math.min(maxRetryMs, saveMs * 2 ** Math.min(this.failures, 10)));
  }

  private flushLater(): void {
    if (this.closed || !this.isRead || this.timer !== undefined) return;
    this.timer = this.parts.clock.setBackgroundTimer(this.retryMs, () => {
      this.timer = undefined;
      void this.flush().then(() => {
        if (this.waiting.size > 0) this.flushLater();
      });
    });
  }

  /** Writes pending changes after the writes in progress. Never rejects; failed writes are repeated later. */
  flush(): Promise<void> {
    this.writing = this.writing.then(() => this.writeAll());
    return this.writing;
  }

  private async writeAll(): Promise<void> {
    if (!this.isRead) return;
    const all = [...this.waiting];
    this.waiting.clear();
    // Another controller now writes these documents and has not read the data in memory here.
    const changes = all.filter(([, { key }]) => this.parts.mayWrite(key.kind));
    this.counts.dropped += all.length - changes.length;
    const failed: unknown[] = [];
    const write = async (): Promise<void> => {
      for (let next = changes.shift(); next !== undefined; next = changes.shift()) {
        const [id, change] = next;
        try {
          await this.write(id, change);
          this.counts.saved += 1;
        } catch (error) {
          failed.push(error);
          this.counts.failed += 1;
          // A newer change of the document replaces the failed one.
          if (!this.waiting.has(id)) this.waiting.set(id, change);
        }
      }
    };
    await Promise.all(Array.from({ length: writesAtOnce }, write));
    this.failures = failed.length > 0 ? this.failures + 1 : 0;
    if (this.failures !== 1) return;
    const reason = String(failed[0]);
    this.parts.logger.error(
      { documents: failed.length, reason },
      'performance data could not be written; the write is repeated later',
    );
  }

  private async write(id: string, { key, read }: Change): Promise<void> {
    try {
      await this.put(id, key, read);
    } catch (error) {
      if (!(error instanceof DocumentConflictError)) throw error;
      // Another controller has written the document, or an operator has deleted it.
      await this.readRevision(id);
      await this.put(id, key, read);
    }
  }

  private async put(id: string, key: DocumentKey, read: Change['read']): Promise<void> {
    const { store, clock } = this.parts;
    const revision = this.revisions.get(id);
    if (read !== undefined) {
      const document = encodeDocument(key, read(), clock.now());
      this.revisions.set(
        id,
        await store.put('gpu', { ...document, ...(revision !== undefined && { _rev: revision }) }),
      );
      return;
    }
    if (revision === undefined) return;
    await store.delete('gpu', id, revision).catch((error: unknown) => {
      if (!(error instanceof NoDocumentError)) throw error;
    });
    this.revisions.delete(id);
  }

  private async readRevision(id: string): Promise<void> {
    const document = await gpuDocument(this.parts.store, id);
    if (document === undefined) this.revisions.delete(id);
    else this.revisions.set(id, String(document._rev));
  }
}
