import type { Registry } from 'prom-client';
import type { ArtifactStore, StoredDocument } from '../store/artifact-store.js';
import { StoreRefusedError } from '../store/artifact-store.js';
import { showMetricsIn } from '../shown-metrics.js';
import { sleep } from '../system/clock.js';
import type { Clock } from '../system/clock.js';
import type { Logger } from '../logging.js';
import { approximateBytes, smallerRecord } from './record-policy.js';
import { RefusedRecords, standInRecords } from './refused-records.js';
import type { RecordExpiry } from './record-expiry.js';

/** How records are gathered. */
export interface RecordWriterOptions {
  /** Records in one write, at most. */
  maxBatch: number;
  /** Bytes in one write, about, unless one record is larger. */
  maxBatchBytes: number;
  /** How long the first record of a batch waits for others, ms. */
  gatherMs: number;
  /** Records, and bytes of records, that wait before nothing more should be begun that ends with one. */
  maxPending: number;
  maxPendingBytes: number;
}

const MiB = 1024 * 1024;
const defaults: RecordWriterOptions = {
  maxBatch: 500,
  maxBatchBytes: 4 * MiB,
  gatherMs: 10,
  maxPending: 2000,
  maxPendingBytes: 64 * MiB,
};
/** Larger records are written one by one, beside the batches: none of another namespace waits for them. */
const largeRecordBytes = MiB;
const firstRetryMs = 100;
const longestRetryMs = 5000;
const closeTimeoutMs = 5000;
/** A record that was refused by itself so often is refused for good. */
const maxRefusals = 4;

interface Entry {
  document: StoredDocument;
  bytes: number;
  stored: () => void;
  /** Monotonic ms. */
  addedMs: number;
}

/**
 * Writes activation records in batches, one after the other. A write that fails is tried again with growing delays and
 * half the records, until the writer is closed; one that the store refuses for what it is, is tried apart from the others,
 * without its logs or result where it is too large. A record that is refused for good is set aside (RefusedRecords), and one
 * without its contents is stored in its place. Nothing is dropped: what ends with a record begins once there is `room`,
 * or refuses, while the writer `isFull`.
 */
export class RecordWriter {
  private queue: Entry[] = [];
  private inHand: Entry[] = [];
  private timerSet = false;
  private writing: Promise<void> | undefined;
  private readonly apart = new Set<Promise<void>>();
  /** Large records that are not stored yet, the oldest first, and the end of the last one's write. */
  private readonly large: Entry[] = [];
  private lastLarge: Promise<void> = Promise.resolve();
  private closed = false;
  private givenUp = false;
  private unstored = 0;
  private unstoredBytes = 0;
  /** Records of the next write, at most: fewer after one that failed. */
  private batchSize: number;
  private waiting: (() => void)[] = [];
  private readonly aside: RefusedRecords;
  private readonly options: RecordWriterOptions;

  constructor(
    private readonly store: ArtifactStore,
    private readonly clock: Clock,
    private readonly logger: Logger,
    options: Partial<RecordWriterOptions> = {},
  ) {
    this.options = { ...defaults, ...options };
    this.batchSize = this.options.maxBatch;
    this.aside = new RefusedRecords(store, clock, logger);
  }

  /** Records that were set aside since the start, as the store refuses them. */
  get refused(): number {
    return this.aside.count;
  }

  /** Records that are not yet durable. */
  get pending(): number {
    return this.unstored;
  }

  /** What they take, bytes, about. */
  get pendingBytes(): number {
    return this.unstoredBytes;
  }

  /** So much waits that nothing more should be begun that ends with a record. */
  get isFull(): boolean {
    const { maxPending, maxPendingBytes } = this.options;
    return this.unstored >= maxPending || this.unstoredBytes >= maxPendingBytes;
  }

  /** Whether the store's disk has too little space for what ends with a record. */
  get storeIsFull(): boolean {
    return this.store.isFull === true;
  }

  /** Resolves once the writer is not full, or is closed. */
  async room(): Promise<void> {
    while (this.isFull && !this.closed) await new Promise<void>((resolve) => this.waiting.push(resolve));
  }

  /** How long the oldest record of the batches has waited, ms: no answer waits because of another one's large record. */
  get lagMs(): number {
    return this.waitedMs(this.inHand[0] ?? this.queue[0]);
  }

  /** How long the oldest large record has waited, ms. */
  get largeLagMs(): number {
    return this.waitedMs(this.large[0]);
  }

  private waitedMs(entry: Entry | undefined): number {
    return entry === undefined ? 0 : this.clock.monotonicMs() - entry.addedMs;
  }

  /** Adds a record; `stored` is called once it is durable (or was stored before under the same id). */
  add(document: StoredDocument, stored: () => void): void {
    const bytes = approximateBytes(document);
    const entry = { document, bytes, stored, addedMs: this.clock.monotonicMs() };
    this.unstored++;
    this.unstoredBytes += bytes;
    if (bytes > largeRecordBytes) return this.writeLarge(entry);
    this.queue.push(entry);
    if (this.writing === undefined && !this.timerSet) this.gather();
  }

  /**
   * Begins a write once the oldest record has waited for `gatherMs`, or at once if a batch is full. A write per few records
   * would cost the thread that stores them several times the processor time of a record.
   */
  private gather(): void {
    const [oldest] = this.queue;
    if (oldest === undefined) return;
    const leftMs = oldest.addedMs + this.options.gatherMs - this.clock.monotonicMs();
    if (this.closed || leftMs <= 0 || this.queue.length >= this.batchSize) return this.write();
    this.timerSet = true;
    this.clock.setTimer(Math.ceil(leftMs), () => {
      this.timerSet = false;
      this.write();
    });
  }

  /** Writes what is gathered; gives up on what cannot be written then, or not within five seconds. */
  async close(): Promise<void> {
    this.closed = true;
    this.wake();
    await new Promise<void>((resolve) => {
      const timer = this.clock.setTimer(closeTimeoutMs, resolve);
      void this.writeRest().finally(() => {
        timer.cancel();
        resolve();
      });
    });
    this.givenUp = true;
  }

  private async writeRest(): Promise<void> {
    while (this.queue.length > 0 || this.writing !== undefined) {
      this.write();
      await this.writing;
    }
    await Promise.all(this.apart);
  }

  private write(): void {
    if (this.writing !== undefined || this.queue.length === 0) return;
    this.writing = this.writeAll().finally(() => {
      this.writing = undefined;
      this.gather();
    });
  }

  /** Writes batches until one succeeds. */
  private async writeAll(): Promise<void> {
    let retryMs = firstRetryMs;
    while (this.queue.length > 0) {
      const batch = (this.inHand = this.takeBatch());
      const problem = await this.tryWrite(batch);
      this.inHand = [];
      if (problem === undefined) {
        this.batchSize = Math.min(this.options.maxBatch, this.batchSize * 2);
        return;
      }
      this.batchSize = Math.max(1, Math.floor(batch.length / 2));
      const refused = problem instanceof StoreRefusedError;
      const [only] = batch;
      if (this.closed && !refused) this.settle([...batch, ...this.queue.splice(0)]);
      else if (refused && batch.length === 1 && only !== undefined) this.writeApart(only, problem);
      // One by itself goes to the end: should it be the reason, others are not kept waiting.
      else if (batch.length === 1) this.queue.push(...batch);
      else this.queue.unshift(...batch);
      if (refused || this.closed) continue;
      await sleep(this.clock, retryMs);
      retryMs = Math.min(longestRetryMs, retryMs * 2);
    }
  }

  private takeBatch(): Entry[] {
    let bytes = 0;
    let count = 0;
    for (const entry of this.queue) {
      bytes += entry.bytes;
      if (count > 0 && (count === this.batchSize || bytes > this.options.maxBatchBytes)) break;
      count++;
    }
    return this.queue.splice(0, count);
  }

  private writeLarge(entry: Entry): void {
    this.large.push(entry);
    const write = async (): Promise<void> => {
      await this.retryApart(entry, await this.tryWrite([entry]));
      this.large.shift();
    };
    this.lastLarge = this.lastLarge.then(write);
    this.noteApart(this.lastLarge);
  }

  /** Goes on with a record that the store refuses, apart from the others. */
  private writeApart(entry: Entry, refusal: StoreRefusedError): void {
    this.noteApart(this.retryApart(entry, refusal));
  }

  private noteApart(work: Promise<void>): void {
    this.apart.add(work);
    void work.finally(() => this.apart.delete(work));
  }

  /** Tries to write a record again, smaller where that may help, until it is stored, set aside, or given up at the end. */
  private async retryApart(entry: Entry, refusal: unknown): Promise<void> {
    let problem = refusal;
    let retryMs = firstRetryMs;
    let refusals = 0;
    while (problem !== undefined) {
      const refused = problem instanceof StoreRefusedError ? problem : undefined;
      const smaller = refused?.tooLarge === true ? smallerRecord(entry.document) : undefined;
      if (refused !== undefined && smaller === undefined) refusals++;
      if (smaller !== undefined) entry.document = smaller;
      else if (refused !== undefined && refusals >= maxRefusals) return await this.setAside(entry, refused.message);
      else if (this.closed) return this.settle([entry]);
      else {
        await sleep(this.clock, retryMs);
        retryMs = Math.min(longestRetryMs, retryMs * 2);
      }
      problem = await this.tryWrite([entry]);
    }
  }

  /** Sets a record aside, stores one without its contents in its place, and ends it, whether or not that is refused, too. */
  private async setAside(entry: Entry, reason: string): Promise<void> {
    if (!(await this.untilTaken(() => this.aside.keep(entry.document, reason)))) return this.settle([entry]);
    for (const document of standInRecords(entry.document)) {
      let isStored = false;
      const create = async (): Promise<void> => {
        await this.store.createMany('activations', [document]);
        isStored = true;
      };
      if (!(await this.untilTaken(create))) return this.settle([entry]);
      if (isStored) break;
    }
    this.settle([entry]);
    if (!this.givenUp) entry.stored();
  }

  /** Writes until the store takes it or refuses it for good; false if the writer is closed before. */
  private async untilTaken(write: () => Promise<void>): Promise<boolean> {
    for (let retryMs = firstRetryMs; ; retryMs = Math.min(longestRetryMs, retryMs * 2)) {
      try {
        await write();
        return true;
      } catch (error) {
        this.logger.error({ error: String(error) }, 'a record that is refused could not be set aside');
        if (error instanceof StoreRefusedError) return true;
        if (this.closed) return false;
      }
      await sleep(this.clock, retryMs);
    }
  }

  private async tryWrite(batch: readonly Entry[]): Promise<unknown> {
    try {
      await this.store.createMany(
        'activations',
        batch.map((entry) => entry.document),
      );
    } catch (error) {
      const { length: records } = batch;
      const waiting = this.unstored;
      this.logger.error({ records, waiting, error: String(error) }, 'activation records could not be stored');
      return error ?? 'no reason given';
    }
    this.settle(batch);
    if (!this.givenUp) for (const entry of batch) entry.stored();
    return undefined;
  }

  /** They wait no more: they are stored, or given up. */
  private settle(batch: readonly Entry[]): void {
    this.unstored -= batch.length;
    for (const { bytes } of batch) this.unstoredBytes -= bytes;
    this.wake();
  }

  private wake(): void {
    if (this.waiting.length === 0 || (this.isFull && !this.closed)) return;
    const waiting = this.waiting;
    this.waiting = [];
    for (const resolve of waiting) resolve();
  }
}

/**
 * Shows in `registry` what waits for the store, as `gpuwhisk_<part>_records_pending`, `..._pending_bytes` and
 * `..._lag_seconds`, and what the store refused for good, as `gpuwhisk_<part>_records_refused_total`.
 */
export function showRecords(registry: Registry, part: string, records: RecordWriter): void {
  const { gauge, counter } = showMetricsIn(registry);
  const name = `gpuwhisk_${part}_records_pending`;
  gauge(name, 'Activation records that are not stored yet', () => records.pending);
  gauge(`${name}_bytes`, 'What they take, about', () => records.pendingBytes);
  const lag = 'How long the oldest record that is not stored has waited';
  gauge(`gpuwhisk_${part}_records_lag_seconds`, lag, () => Math.max(records.lagMs, records.largeLagMs) / 1000);
  const refused = 'Activation records that the store refuses for good, and that were set aside';
  counter(`gpuwhisk_${part}_records_refused_total`, refused, () => records.refused);
}

/** Shows in `registry` how many records were removed, as `gpuwhisk_controller_records_expired_total`. */
export function showExpiry(registry: Registry, expiry: RecordExpiry): void {
  const help = 'Activation records that have expired and were removed';
  showMetricsIn(registry).counter('gpuwhisk_controller_records_expired_total', help, () => expiry.removed);
}
