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
}

const checkEveryMs = 600_000;
const refillAfterMs = 100;

/** Prewarmed containers per spec, refilled when used (OpenWhisk's ContainerPool). */
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
      .map((config) => ({ config, wanted: config.initialCount, cells: [], starting: 0, coldStarts: 0 }));
    if (this.stocks.length > 0) this.scheduleCheck();
  }

  /** Starts what is missing; resolves when all have started or failed. */
  async fill(): Promise<void> {
    for (const stock of this.stocks) this.refill(stock);
    await Promise.all(this.pending);
  }

  /** A prewarmed container that serves `wanted`, the caller's from now on with its memory; undefined if there is none. */
  take(wanted: ContainerSpec): Container | undefined {
    for (const stock of this.stocks) {
      if (this.factory.match(stock.config.spec, wanted) !== 'exact') continue;
      const cell = stock.cells.shift();
      if (cell === undefined) continue;
      this.clock.setBackgroundTimer(refillAfterMs, () => this.refill(stock));
      return cell.container;
    }
    return undefined;
  }

  /** Counts a start that no stem cell could serve. */
  noteColdStart(spec: ContainerSpec): void {
    for (const stock of this.stocks) if (this.factory.match(stock.config.spec, spec) === 'exact') stock.coldStarts++;
  }

  count(): number {
    return this.stocks.reduce((sum, stock) => sum + stock.cells.length, 0);
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

  private scheduleCheck(): void {
    this.clock.setBackgroundTimer(checkEveryMs, () => {
      if (this.closing) return;
      for (const stock of this.stocks) this.check(stock);
      this.scheduleCheck();
    });
  }

  private check(stock: Stock): void {
    const { reactive, initialCount } = stock.config;
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
        this.destroy(stock, cell).catch((error: unknown) =>
          this.logger.error(
            { container: cell.container.id, error: String(error) },
            'a stem cell could not be destroyed',
          ),
        );
      }
    }
    stock.coldStarts = 0;
    this.refill(stock);
  }
}
