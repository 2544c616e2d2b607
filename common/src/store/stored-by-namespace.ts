import { Worker } from 'node:worker_threads';
import type { FullCount } from './lmdb-count.js';
import { isComplete, openSizes, readCounts, LmdbSizes } from './lmdb-sizes.js';
import type { Counter, NoteBytes } from './lmdb-sizes.js';
import type { LmdbWrites, Root } from './lmdb-table.js';
import { addBytes } from './stored-bytes.js';
import type { NamespaceBytes } from './stored-bytes.js';

/** Dependencies of StoredByNamespace. */
interface StoredParts {
  folder: string;
  root: Root;
  writes: LmdbWrites;
  /** Whether nothing is stored yet. */
  isEmpty: boolean;
  /** Runs a write of so many bytes at most, if there is space for it. */
  write: (bytes: number, work: () => Promise<void>) => Promise<void>;
  onWarning: (line: string) => void;
}

/** What a stored count takes, bytes, at most. */
const rowBytes = 1024;

/**
 * Bytes that each namespace has stored, as the store's thread knows them. Counts are stored with the data. Data of earlier
 * releases, which stored none, is counted once in a thread of its own; until that has ended it counts for nothing.
 */
export class StoredByNamespace {
  private readonly counts: Record<Counter, NamespaceBytes>;
  private readonly sizes: LmdbSizes;
  private readonly stop = new Int32Array(new SharedArrayBuffer(4));
  private counting: Promise<void> | undefined;
  private worker: Worker | undefined;

  constructor(private readonly parts: StoredParts) {
    const { root, writes } = parts;
    const table = openSizes(root);
    this.counts = readCounts(table);
    this.sizes = new LmdbSizes(root, writes, 'store', this.counts.store);
    if (isComplete(table)) return;
    this.counting = this.countEarlier().catch((error: unknown) => {
      if (this.isStopped) return;
      const reason = error instanceof Error ? error.message : String(error);
      parts.onWarning(`data that was stored by an earlier release does not count for its namespaces: ${reason}`);
    });
  }

  /** Bytes of a namespace's data. */
  of(namespace: string): number {
    let sum = 0;
    for (const counts of Object.values(this.counts)) sum += counts.get(namespace) ?? 0;
    return Math.max(0, sum);
  }

  /** The namespaces that have stored anything, with their bytes. */
  *all(): Iterable<[namespace: string, bytes: number]> {
    for (const namespace of new Set(Object.values(this.counts).flatMap((counts) => [...counts.keys()]))) {
      yield [namespace, this.of(namespace)];
    }
  }

  /** A durable write with its change of bytes. Rejects with StoreWriteError. */
  async durable(gather: (note: NoteBytes) => void): Promise<void> {
    await this.sizes.durable(gather);
  }

  /** Takes counts that have changed in another thread. */
  take(counter: Counter, counts: NamespaceBytes): void {
    for (const [namespace, bytes] of counts) this.counts[counter].set(namespace, bytes);
  }

  /** Ends the count of earlier data, which begins again at the next start. */
  async close(): Promise<void> {
    Atomics.store(this.stop, 0, 1);
    this.worker?.ref();
    await this.counting;
  }

  private get isStopped(): boolean {
    return Atomics.load(this.stop, 0) !== 0;
  }

  private async countEarlier(): Promise<void> {
    const { root, writes, isEmpty, write } = this.parts;
    const found: FullCount | undefined = isEmpty ? { all: new Map(), counted: new Map() } : await this.countInThread();
    if (found === undefined || this.isStopped) return;
    const before: NamespaceBytes = new Map(found.all);
    for (const [namespace, bytes] of found.counted) addBytes(before, namespace, -bytes);
    await write(rowBytes * (1 + before.size), () => new LmdbSizes(root, writes, 'before', before).complete());
    for (const [namespace, bytes] of before) this.counts.before.set(namespace, bytes);
  }

  /** Undefined if it was stopped. */
  private async countInThread(): Promise<FullCount | undefined> {
    const { folder } = this.parts;
    const entry = new URL('./count-thread-entry.js', import.meta.url);
    const worker = new Worker(entry, { workerData: { folder, stop: this.stop }, execArgv: [] });
    this.worker = worker;
    // By itself it does not keep the process from its end.
    worker.unref();
    let found: FullCount | undefined;
    let failure: Error | undefined;
    worker.on('message', (count: FullCount | undefined) => (found = count));
    worker.on('error', (error: Error) => (failure = error));
    await new Promise((resolve) => worker.once('exit', resolve));
    this.worker = undefined;
    if (failure !== undefined) throw failure;
    return found;
  }
}
