import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Logger } from '@gpuwhisk/common/logging';
import type { Container, ContainerFactory, ContainerSpec } from '../containers/container-factory.js';

/** Stem cells of one spec. */
export interface StemCellConfig {
  spec: ContainerSpec;
  /** Kept at hand from the start on. */
  initialCount: number;
  /** Follows the number of cold starts: clamp(coldStarts / threshold · increment, minCount, maxCount). */
  reactive?: { minCount: number; maxCount: number; ttlMs: number; threshold: number; increment: number };
}

/** Where the memory of stem cells comes from. */
export interface MemoryAccount {
  claim(memoryMiB: number): boolean;
  release(memoryMiB: number): void;
}

interface Cell {
  container: Container;
  readyMs: number;
}

interface Stock {
  config: StemCellConfig;
  wanted: number;
  cells: Cell[];
  starting: number;
  /** Cold starts of this spec since the last check. */
  coldStarts: number;
  /** Made for what actions load ahead (annotation `warm`), and given up when none of them needs it any more. */
  demanded: boolean;
  /** Monotonic ms of the last time that a container of this spec was wanted. */
  wantedMs: number;
}

const checkEveryMs = 600_000;
const refillAfterMs = 100;
/** Specs that actions load something ahead for and that have stem cells, at most; the one longest unused makes room. */
const maxDemanded = 16;
const demandedForMs = 600_000;

/**
 * Prewarmed containers per spec, refilled when used (OpenWhisk's ContainerPool). An action whose annotation `warm` names
 * imports gets one with these loaded for its next start.
 */
export class StemCells {
  private readonly stocks: Stock[];
  private closing = false;
  private readonly pending = new Set<Promise<void>>();

  constructor(
    private readonly factory: ContainerFactory,
    private readonly clock: Clock,
    configs: readonly StemCellConfig[],
    private readonly memory: MemoryAccount,
    private readonly logger: Logger,
  ) {
    this.stocks = configs
      .filter((config) => factory.supports(config.spec.kind))
      .map((config) => this.stock(config, false));
    this.scheduleCheck();
  }

  /** Starts what is missing; resolves when all have started or failed. */
  async fill(): Promise<void> {
    for (const stock of this.stocks) this.refill(stock);
    await Promise.all(this.pending);
  }

  /** A prewarmed container that serves `wanted`, the caller's from now on with its memory; undefined if there is none. */
  take(wanted: ContainerSpec): Container | undefined {
    const exact = this.exact(wanted);
    if (exact !== undefined) exact.wantedMs = this.clock.monotonicMs();
    else if (wanted.imports.length > 0 || wanted.cuda) this.demand(wanted);
    const stock = exact?.cells.length ? exact : this.bestSubset(wanted);
    const cell = stock?.cells.shift();
    if (stock === undefined || cell === undefined) return undefined;
    this.refillSoon(stock);
    return cell.container;
  }

  /** Counts a start that no stem cell could serve. */
  noteColdStart(spec: ContainerSpec): void {
    const stock = this.exact(spec);
    if (stock !== undefined) stock.coldStarts++;
  }

  count(): number {
    return this.stocks.reduce((sum, stock) => sum + stock.cells.length, 0);
  }

  /** The containers at hand. */
  list(): Container[] {
    return this.stocks.flatMap(({ cells }) => cells.map(({ container }) => container));
  }

  /** Memory of the containers at hand, MiB. */
  heldMiB(): number {
    return this.stocks.reduce((sum, { cells, config }) => sum + cells.length * config.spec.memoryMiB, 0);
  }

  /** Containers that together have `memoryMiB` or more if there are so many, the caller's from now on with their memory. */
  giveUp(memoryMiB: number): Container[] {
    const given: Container[] = [];
    let missingMiB = memoryMiB;
    for (const { cells, config } of this.stocks) {
      while (missingMiB > 0) {
        const cell = cells.pop();
        if (cell === undefined) break;
        given.push(cell.container);
        missingMiB -= config.spec.memoryMiB;
      }
    }
    return given;
  }

  async close(): Promise<void> {
    this.closing = true;
    await Promise.all(this.pending);
    for (const stock of this.stocks) await Promise.all(stock.cells.splice(0).map((cell) => this.destroy(stock, cell)));
  }

  private stock(config: StemCellConfig, demanded: boolean): Stock {
    const wantedMs = this.clock.monotonicMs();
    return { config, wanted: config.initialCount, cells: [], starting: 0, coldStarts: 0, demanded, wantedMs };
  }

  private exact(spec: ContainerSpec): Stock | undefined {
    return this.stocks.find(({ config }) => this.factory.match(config.spec, spec) === 'exact');
  }

  /** Of the stocks that have a container with a part of the imports, the one with the largest part. */
  private bestSubset(wanted: ContainerSpec): Stock | undefined {
    let best: Stock | undefined;
    for (const stock of this.stocks) {
      const { spec } = stock.config;
      if (stock.cells.length === 0 || this.factory.match(spec, wanted) !== 'subset') continue;
      if (best === undefined || spec.imports.length > best.config.spec.imports.length) best = stock;
    }
    return best;
  }

  private demand(spec: ContainerSpec): void {
    const demanded = this.stocks.filter((stock) => stock.demanded).sort((a, b) => a.wantedMs - b.wantedMs);
    if (demanded.length >= maxDemanded) this.giveUpStock(demanded[0] as Stock);
    const reactive = { minCount: 1, maxCount: 4, ttlMs: demandedForMs, threshold: 1, increment: 1 };
    const stock = this.stock({ spec, initialCount: 1, reactive }, true);
    this.stocks.push(stock);
    this.refillSoon(stock);
  }

  private giveUpStock(stock: Stock): void {
    stock.wanted = 0;
    this.stocks.splice(this.stocks.indexOf(stock), 1);
    for (const cell of stock.cells.splice(0)) this.destroyInBackground(stock, cell);
  }

  private refillSoon(stock: Stock): void {
    this.clock.setBackgroundTimer(refillAfterMs, () => this.refill(stock));
  }

  private refill(stock: Stock): void {
    while (!this.closing && stock.cells.length + stock.starting < stock.wanted) {
      if (!this.memory.claim(stock.config.spec.memoryMiB)) return;
      stock.starting++;
      const start = this.start(stock).finally(() => this.pending.delete(start));
      this.pending.add(start);
    }
  }

  private async start(stock: Stock): Promise<void> {
    const { spec } = stock.config;
    try {
      const container = await this.factory.prewarm(spec);
      const cell = { container, readyMs: this.clock.monotonicMs() };
      if (!this.stocks.includes(stock)) return this.destroyInBackground(stock, cell);
      stock.cells.push(cell);
      void container.exited.then(() => this.lost(stock, cell));
    } catch (error) {
      this.memory.release(spec.memoryMiB);
      this.logger.warn({ kind: spec.kind, error: String(error) }, 'a stem cell could not be started');
    } finally {
      stock.starting--;
    }
  }

  private lost(stock: Stock, cell: Cell): void {
    const at = stock.cells.indexOf(cell);
    if (at < 0) return;
    stock.cells.splice(at, 1);
    this.memory.release(stock.config.spec.memoryMiB);
  }

  private async destroy(stock: Stock, cell: Cell): Promise<void> {
    await cell.container.destroy();
    this.memory.release(stock.config.spec.memoryMiB);
  }

  private destroyInBackground(stock: Stock, cell: Cell): void {
    this.destroy(stock, cell).catch((error: unknown) =>
      this.logger.error({ container: cell.container.id, error: String(error) }, 'a stem cell could not be destroyed'),
    );
  }

  private scheduleCheck(): void {
    this.clock.setBackgroundTimer(checkEveryMs, () => {
      if (this.closing) return;
      for (const stock of [...this.stocks]) this.check(stock);
      this.scheduleCheck();
    });
  }

  private check(stock: Stock): void {
    const { reactive, initialCount } = stock.config;
    if (stock.demanded && this.clock.monotonicMs() - stock.wantedMs > demandedForMs) return this.giveUpStock(stock);
    if (reactive !== undefined) {
      const grown = Math.floor(stock.coldStarts / reactive.threshold) * reactive.increment;
      stock.wanted =
        stock.coldStarts === 0 ? initialCount : Math.min(reactive.maxCount, Math.max(reactive.minCount, grown));
      const nowMs = this.clock.monotonicMs();
      const expired = stock.cells
        .filter((cell) => nowMs - cell.readyMs > reactive.ttlMs)
        .slice(0, Math.max(0, stock.cells.length - stock.wanted));
      for (const cell of expired) {
        stock.cells.splice(stock.cells.indexOf(cell), 1);
        this.destroyInBackground(stock, cell);
      }
    }
    stock.coldStarts = 0;
    this.refill(stock);
  }
}
