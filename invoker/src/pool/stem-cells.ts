import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Logger } from '@gpuwhisk/common/logging';
import type { Container, ContainerFactory, ContainerSpec } from '../containers/container-factory.js';
import { deviceMemoryBeside } from './memory-budget.js';
import type { Measure } from './memory-budget.js';
import type { StoreServices, ContainerStore } from './container-store.js';

/** Stem cells of one spec. */
export interface StemCellConfig {
  spec: ContainerSpec;
  /** Kept at hand from the start on. */
  initialCount: number;
  /** How long after the pool's start they begin, ms; default 0. */
  startAfterMs?: number;
  /** Follows the number of cold starts: clamp(coldStarts / threshold · increment, minCount, maxCount). */
  reactive?: { minCount: number; maxCount: number; ttlMs: number; threshold: number; increment: number };
}

/** Which containers are kept started ahead of need. */
export interface StemCellOptions {
  stemCells: readonly StemCellConfig[];
  /** Whether there are some for specs that actions turn out to want, too. */
  stemCellsOnDemand: boolean;
  /** Of those, for how many specs there are some on each GPU, at most; default 0. */
  gpuStemCells?: number;
}

interface StemCell {
  container: Container;
  readyMs: number;
}

interface StemCellPool {
  config: StemCellConfig;
  wanted: number;
  cells: StemCell[];
  starting: number;
  /** Cold starts of this spec since the last check. */
  coldStarts: number;
  /** Made because an action wanted such a container, and given up when none does any more. */
  demanded: boolean;
  /** Monotonic ms of the last time that a container of this spec was wanted. */
  wantedMs: number;
  /** Has less than is wanted because there was no memory. */
  lacksMemory: boolean;
}

const checkEveryMs = 600_000;
const refillAfterMs = 100;
/** Specs that have stem cells only because an action wanted one, at most; the one longest unwanted makes room. */
const maxDemanded = 16;
const demandedForMs = 600_000;

/**
 * Prewarmed containers per spec, refilled when used (OpenWhisk's ContainerPool). Beyond the configured specs there is one
 * for a next start of what started cold, or wanted modules loaded (annotation `warm`) that none had.
 */
export class StemCells implements ContainerStore {
  private readonly stocks: StemCellPool[];
  private closing = false;
  private readonly pending = new Set<Promise<void>>();

  constructor(
    private readonly factory: ContainerFactory,
    private readonly clock: Clock,
    private readonly options: StemCellOptions,
    private readonly keeping: StoreServices,
    private readonly logger: Logger,
  ) {
    this.stocks = options.stemCells
      .filter((config) => factory.supports(config.spec.kind))
      .map((config) => this.stock(config, false));
    this.scheduleCheck();
  }

  /** Starts what is missing, as early as each may be; resolves when those of the start have started or failed. */
  async fill(): Promise<void> {
    for (const stock of this.stocks) {
      const { startAfterMs = 0 } = stock.config;
      if (startAfterMs === 0) this.refill(stock);
      else this.clock.setBackgroundTimer(startAfterMs, () => this.refill(stock));
    }
    await Promise.all(this.pending);
  }

  /** A prewarmed container that serves `wanted`, the caller's from now on with its memory; undefined if there is none. */
  take(wanted: ContainerSpec): Container | undefined {
    const exact = this.exact(wanted);
    if (exact !== undefined) {
      exact.wantedMs = this.clock.monotonicMs();
      // Those it had may have made room, or found none.
      if (exact.cells.length === 0) this.refillSoon(exact);
    } else if (!isPlain(wanted)) this.demand(wanted);
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
    else this.demand(spec);
  }

  list(): Container[] {
    return this.stocks.flatMap(({ cells }) => cells.map(({ container }) => container));
  }

  has(container: Container): boolean {
    return this.holderOf(container) !== undefined;
  }

  replace(container: Container): void {
    const stock = this.holderOf(container);
    if (stock === undefined) return;
    stock.cells = stock.cells.filter((cell) => cell.container !== container);
    this.keeping.removals.remove(container);
    this.refillSoon(stock);
  }

  /** Memory of the containers at hand, MiB. */
  heldMiB(memoryOf: Measure): number {
    return this.stocks.reduce((sum, { cells, config }) => sum + cells.length * memoryOf(config.spec), 0);
  }

  /**
   * Destroys containers until they had `memoryMiB` together; how much they had, MiB. `expendable`: only those that are
   * there for a next cold start, with nothing loaded ahead.
   */
  giveUp(memoryMiB: number, which: 'expendable' | 'all', memoryOf: Measure): number {
    let freedMiB = 0;
    for (const stock of this.stocks) {
      const { cells, config, demanded } = stock;
      if (which === 'expendable' && !(demanded && isPlain(config.spec))) continue;
      const eachMiB = memoryOf(config.spec);
      while (eachMiB > 0 && freedMiB < memoryMiB && cells.length > 0) {
        freedMiB += eachMiB;
        stock.lacksMemory = true;
        this.keeping.removals.remove((cells.pop() as StemCell).container);
      }
    }
    return freedMiB;
  }

  /** Starts what memory was lacking for, as far as there is some now. */
  restock(): void {
    for (const stock of this.stocks) if (stock.lacksMemory) this.refill(stock);
  }

  /** Starts none any more, and destroys those at hand. */
  async close(): Promise<void> {
    this.closing = true;
    await Promise.all(this.pending);
    for (const { cells } of this.stocks)
      for (const { container } of cells.splice(0)) this.keeping.removals.remove(container);
  }

  private stock(config: StemCellConfig, demanded: boolean): StemCellPool {
    const wantedMs = this.clock.monotonicMs();
    return {
      config,
      wanted: config.initialCount,
      cells: [],
      starting: 0,
      coldStarts: 0,
      demanded,
      wantedMs,
      lacksMemory: false,
    };
  }

  private holderOf(container: Container): StemCellPool | undefined {
    return this.stocks.find(({ cells }) => cells.some((cell) => cell.container === container));
  }

  private exact(spec: ContainerSpec): StemCellPool | undefined {
    return this.stocks.find(({ config }) => this.factory.match(config.spec, spec) === 'exact');
  }

  /** Of the stocks that have a container with a part of the imports, the one with the largest part; then the smallest share. */
  private bestSubset(wanted: ContainerSpec): StemCellPool | undefined {
    let best: StemCellPool | undefined;
    for (const stock of this.stocks) {
      const { spec } = stock.config;
      if (stock.cells.length === 0 || this.factory.match(spec, wanted) !== 'subset') continue;
      if (best === undefined || spec.imports.length > best.config.spec.imports.length) best = stock;
    }
    return best;
  }

  private demand(spec: ContainerSpec): void {
    if (!this.options.stemCellsOnDemand) return;
    const demanded = this.stocks.filter((stock) => stock.demanded).sort((a, b) => a.wantedMs - b.wantedMs);
    if (spec.gpu !== undefined) {
      // One of several devices would keep others off all of them.
      if (spec.gpu.devices.length > 1) return;
      const { gpuStemCells = 0 } = this.options;
      const beside = demanded.filter((stock) => deviceMemoryBeside(spec, stock.config.spec) > 0);
      if (gpuStemCells === 0) return;
      if (beside.length >= gpuStemCells) this.giveUpStock(beside[0] as StemCellPool);
    }
    const left = demanded.filter((stock) => this.stocks.includes(stock));
    if (left.length >= maxDemanded) this.giveUpStock(left[0] as StemCellPool);
    const reactive = { minCount: 1, maxCount: 4, ttlMs: demandedForMs, threshold: 1, increment: 1 };
    const stock = this.stock({ spec, initialCount: 1, reactive }, true);
    this.stocks.push(stock);
    this.refillSoon(stock);
  }

  private giveUpStock(stock: StemCellPool): void {
    stock.wanted = 0;
    this.stocks.splice(this.stocks.indexOf(stock), 1);
    for (const { container } of stock.cells.splice(0)) this.keeping.removals.remove(container);
  }

  private refillSoon(stock: StemCellPool): void {
    this.clock.setBackgroundTimer(refillAfterMs, () => this.refill(stock));
  }

  private refill(stock: StemCellPool): void {
    stock.lacksMemory = false;
    while (!this.closing && stock.cells.length + stock.starting < stock.wanted) {
      if (!this.keeping.memory.claim(stock.config.spec)) {
        stock.lacksMemory = true;
        return;
      }
      stock.starting++;
      const start = this.start(stock).finally(() => this.pending.delete(start));
      this.pending.add(start);
    }
  }

  private async start(stock: StemCellPool): Promise<void> {
    const { spec } = stock.config;
    try {
      const container = await this.factory.prewarm(spec);
      if (!this.stocks.includes(stock)) return this.keeping.removals.remove(container);
      void container.giveWay(false);
      stock.cells.push({ container, readyMs: this.clock.monotonicMs() });
      this.keeping.watch.set(container, () => this.replace(container));
    } catch (error) {
      this.keeping.memory.release(spec);
      this.logger.warn({ kind: spec.kind, error: String(error) }, 'a stem cell could not be started');
    } finally {
      stock.starting--;
    }
  }

  private scheduleCheck(): void {
    this.clock.setBackgroundTimer(checkEveryMs, () => {
      if (this.closing) return;
      for (const stock of [...this.stocks]) this.check(stock);
      this.scheduleCheck();
    });
  }

  private check(stock: StemCellPool): void {
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
        this.keeping.removals.remove(cell.container);
      }
    }
    stock.coldStarts = 0;
    this.refill(stock);
  }
}

function isPlain({ imports, cuda }: ContainerSpec): boolean {
  return imports.length === 0 && !cuda;
}
