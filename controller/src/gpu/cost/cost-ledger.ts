import type { Logger } from '@gpuwhisk/common/logging';
import { gpuUseTable } from '@gpuwhisk/common/gpu-nodes';
import type { NodeUse } from '@gpuwhisk/common/gpu-nodes';
import type { Metrics } from '@gpuwhisk/common/metrics';
import type { ClusterState } from '@gpuwhisk/common/state/cluster-state';
import type { ArtifactStore, StoredDocument } from '@gpuwhisk/common/store/artifact-store';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';
import { addBook, charge, chargeBoot, newCostBook } from '@gpuwhisk/gpu/stages/procure/costs';
import type { CostBook, CostMarket, FunctionCost, MarketCost, SeenUse } from '@gpuwhisk/gpu/stages/procure/costs';
import { Gauge } from 'prom-client';
import { gpuDocuments } from '../state/gpu-documents.js';
import type { LeaseKeeper } from '../../cluster/lease.js';

/** Dependencies of CostLedger. */
export interface CostLedgerParts {
  store: ArtifactStore;
  state: Pick<ClusterState, 'rows'>;
  lease: Pick<LeaseKeeper, 'epoch'>;
  clock: Clock;
  logger: Logger;
  metrics: Pick<Metrics, 'registry'>;
}

/** Prefix of the documents' ids; a day follows: `2026-01-31`. */
const prefix = 'cost/';
/** Interval of charges, and of writes, ms. */
const lookMs = 5000;
/** Days that are kept. */
const keptDays = 400;

/** A day's costs as they are stored, with the counts of nodes up to which they are charged. */
interface DayDocument {
  functions: FunctionCost[];
  markets: [CostMarket, MarketCost][];
  /** Grows with every write of any day, so that the last counts are found. */
  sequence: number;
  seen: [invoker: string, seen: { start: string; upMs: number; used: [string, number][] }][];
}

/** The day of a time, UTC: `2026-01-31`. */
export function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}

/**
 * Charges the use that agents report to functions, by day. A day and the counts that it has charged are one document: a new
 * leader goes on from the last one that was written, and charges nothing twice.
 */
export class CostLedger {
  private day = '';
  private book: CostBook = newCostBook();
  /** What the next look adds to the book of its day. */
  private due: CostBook = newCostBook();
  private seen = new Map<string, SeenUse>();
  private sequence = 0;
  private revision: string | undefined;
  private readEpoch: number | undefined;
  private isChanged = false;
  private priceOf: (invoker: string) => number | undefined = () => undefined;
  private timer: Timer | undefined;
  private looking: Promise<void> = Promise.resolve();
  private closed = false;

  constructor(private readonly parts: CostLedgerParts) {
    const gauge = new Gauge({
      name: 'gpuwhisk_gpu_cost_today',
      help: "Cost of nodes since midnight UTC, in the operator's currency, by market and part; of the leader only",
      labelNames: ['market', 'part'],
      registers: [parts.metrics.registry],
      collect: () => {
        gauge.reset();
        for (const [market, { cost, idle, boot }] of this.book.markets) {
          gauge.set({ market, part: 'functions' }, cost - idle - boot);
          gauge.set({ market, part: 'idle' }, idle);
          gauge.set({ market, part: 'boot' }, boot);
        }
      },
    });
  }

  /** Begins to charge while this controller is the leader. `priceOf` returns the price of a rented machine, by its invoker. */
  open(priceOf: (invoker: string) => number | undefined): void {
    this.priceOf = priceOf;
    this.lookSoon();
  }

  async close(): Promise<void> {
    this.closed = true;
    this.timer?.cancel();
    await this.looking;
  }

  /** Charges the time of a machine until its invoker reported. */
  booted(market: CostMarket, pricePerHour: number, ms: number): void {
    chargeBoot(this.due, market, pricePerHour, ms);
    this.isChanged = true;
  }

  /** The costs of the days `from` to `to`, both included. Rejects if the store fails. */
  async between(from: string, to: string): Promise<CostBook> {
    const sum = newCostBook();
    for (const document of await gpuDocuments(this.parts.store, prefix)) {
      const day = document._id.slice(prefix.length);
      if (day >= from && day <= to) addBook(sum, bookOf(document));
    }
    return sum;
  }

  private lookSoon(): void {
    this.timer = this.parts.clock.setBackgroundTimer(lookMs, () => {
      this.looking = this.look()
        .catch((error: unknown) => {
          // The document that is stored decides what was charged.
          this.readEpoch = undefined;
          this.parts.logger.error({ error: String(error) }, 'costs could not be charged; again later');
        })
        .then(() => {
          if (!this.closed) this.lookSoon();
        });
    });
  }

  private async look(): Promise<void> {
    const { lease, state, clock } = this.parts;
    const { epoch } = lease;
    if (epoch === undefined) {
      this.readEpoch = undefined;
      return;
    }
    if (epoch !== this.readEpoch) await this.read();
    this.readEpoch = epoch;
    const day = dayOf(clock.now());
    const hasTurned = this.day !== '' && day !== this.day;
    if (day !== this.day) await this.turnTo(day);
    addBook(this.book, this.due);
    this.due = newCostBook();
    const rows = await state.rows(gpuUseTable);
    for (const [invoker, row] of rows) {
      const use = row as unknown as NodeUse;
      const known = this.seen.get(invoker);
      if (known?.start === use.start && known.upMs === use.upMs) continue;
      const pricePerHour = this.priceOf(invoker) ?? use.pricePerHour;
      const priced = { ...use, ...(pricePerHour !== undefined && { pricePerHour }) };
      this.seen.set(invoker, charge(this.book, priced, known));
      this.isChanged = true;
    }
    // Not at once: rows that the cluster's state has lost come again with the same counts.
    if (hasTurned) for (const invoker of this.seen.keys()) if (!rows.has(invoker)) this.seen.delete(invoker);
    if (this.isChanged) await this.write();
  }

  /** Reads the counts of the document that was written last. */
  private async read(): Promise<void> {
    const documents = await gpuDocuments(this.parts.store, prefix);
    const dayDocument = (one: StoredDocument): DayDocument => one as unknown as DayDocument;
    const last = documents.reduce<StoredDocument | undefined>(
      (latest, one) =>
        latest === undefined || dayDocument(one).sequence > dayDocument(latest).sequence ? one : latest,
      undefined,
    );
    this.seen = new Map(
      (last ? dayDocument(last).seen : []).map(([invoker, { start, upMs, used }]) => [
        invoker,
        { start, upMs, used: new Map(used) },
      ]),
    );
    this.sequence = last ? dayDocument(last).sequence : 0;
    this.day = '';
  }

  /** Opens the book of a day, which may exist if the clock was set back, and removes days that are too old. */
  private async turnTo(day: string): Promise<void> {
    const { store, clock } = this.parts;
    const documents = await gpuDocuments(store, prefix);
    const found = documents.find(({ _id: id }) => id === prefix + day);
    this.book = found ? bookOf(found) : newCostBook();
    this.revision = found && String(found._rev);
    this.day = day;
    const oldest = prefix + dayOf(clock.now() - keptDays * 86_400_000);
    for (const { _id: id, _rev: revision } of documents)
      if (id < oldest) await store.delete('gpu', id, String(revision));
  }

  private async write(): Promise<void> {
    const { functions, markets } = this.book;
    const document: DayDocument = {
      functions: [...functions.values()],
      markets: [...markets],
      sequence: (this.sequence += 1),
      seen: Array.from(this.seen, ([invoker, { start, upMs, used }]) => [invoker, { start, upMs, used: [...used] }]),
    };
    const stored = { ...document, _id: prefix + this.day, ...(this.revision !== undefined && { _rev: this.revision }) };
    this.isChanged = false;
    this.revision = await this.parts.store.put('gpu', stored as unknown as StoredDocument);
  }
}

function bookOf(document: StoredDocument): CostBook {
  const { functions, markets } = document as unknown as DayDocument;
  const book = newCostBook();
  addBook(book, {
    functions: new Map(functions.map((one) => [`${one.namespace}\n${one.action}`, one])),
    markets: new Map(markets),
  });
  return book;
}
