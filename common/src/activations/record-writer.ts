import type { ArtifactStore, StoredDocument } from '../store/artifact-store.js';
import { sleep } from '../system/clock.js';
import type { Clock } from '../system/clock.js';
import type { Logger } from '../logging.js';

/** How records are gathered. */
export interface RecordWriterOptions {
  /** Records in one write, at most. */
  maxBatch: number;
  /** How long the first record of a batch waits for others, ms. */
  gatherMs: number;
}

const defaults: RecordWriterOptions = { maxBatch: 500, gatherMs: 10 };
const firstRetryMs = 100;
const longestRetryMs = 5000;

interface Entry {
  document: StoredDocument;
  stored: () => void;
  /** Monotonic ms. */
  addedMs: number;
}

/**
 * Writes activation records in batches. A write that fails is tried again, ever more slowly, until the writer is
 * closed: whoever adds records bounds how many may be on their way (the feed hands out no more activations than
 * its bound until their records are stored). A record that fails where others succeed is tried apart from them.
 */
export class RecordWriter {
  private gathered: Entry[] = [];
  private inHand: Entry[] = [];
  private timerSet = false;
  private writing: Promise<void> | undefined;
  private closed = false;
  private unstored = 0;

  constructor(
    private readonly store: ArtifactStore,
    private readonly clock: Clock,
    private readonly logger: Logger,
    private readonly options: RecordWriterOptions = defaults,
  ) {}

  /** Records that are not yet durable. */
  get pending(): number {
    return this.unstored;
  }

  /** How long the oldest record that waits for its turn has waited, ms. */
  get lagMs(): number {
    const oldest = this.inHand[0] ?? this.gathered[0];
    return oldest === undefined ? 0 : this.clock.monotonicMs() - oldest.addedMs;
  }

  /** Adds a record; `stored` is called once it is durable (or was stored before under the same id). */
  add(document: StoredDocument, stored: () => void): void {
    this.gathered.push({ document, stored, addedMs: this.clock.monotonicMs() });
    this.unstored++;
    if (this.timerSet || this.writing !== undefined) return;
    this.timerSet = true;
    this.clock.setTimer(this.options.gatherMs, () => {
      this.timerSet = false;
      this.write();
    });
  }

  /** Writes what is gathered; gives up on what cannot be written then. */
  async close(): Promise<void> {
    this.closed = true;
    while (this.unstored > 0) {
      this.write();
      if (this.writing === undefined) break;
      await this.writing;
    }
  }

  private write(): void {
    if (this.writing !== undefined || this.gathered.length === 0) return;
    this.inHand = this.gathered.splice(0, this.options.maxBatch);
    this.writing = this.writeBatch(this.inHand).then(() => {
      this.inHand = [];
      this.writing = undefined;
      this.write();
    });
  }

  private async writeBatch(batch: Entry[]): Promise<void> {
    let retryMs = firstRetryMs;
    for (;;) {
      const problem = await this.tryWrite(batch);
      if (problem === undefined) return;
      this.logger.error({ records: batch.length, error: String(problem) }, 'activation records could not be stored');
      if (this.closed) {
        this.unstored -= batch.length;
        return;
      }
      await sleep(this.clock, retryMs);
      retryMs = Math.min(longestRetryMs, retryMs * 2);
      if (batch.length === 1) continue;
      const problems = await Promise.all(batch.map((entry) => this.tryWrite([entry])));
      const refused = batch.filter((_, index) => problems[index] !== undefined);
      if (refused.length < batch.length) {
        for (const entry of refused) void this.writeBatch([entry]);
        return;
      }
    }
  }

  private async tryWrite(batch: Entry[]): Promise<unknown> {
    try {
      await this.store.createMany(
        'activations',
        batch.map((entry) => entry.document),
      );
    } catch (error) {
      return error ?? 'no reason given';
    }
    this.unstored -= batch.length;
    for (const entry of batch) entry.stored();
    return undefined;
  }
}
