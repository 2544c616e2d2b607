import type { Logger } from '@gpuwhisk/common/logging';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Container, ContainerFactory, ContainerSpec, Match } from '../containers/container-factory.js';
import type { StoreServices, ContainerStore } from './container-store.js';
import { planReady, StartCount } from './learned-cells.js';
import { deviceMemoryBeside } from './memory-budget.js';
import type { Measure } from './memory-budget.js';

/** Stem cells of one spec. */
export interface StemCellConfig {
  spec: ContainerSpec;
  /** Number of cells from the start on. */
  initialCount: number;
  /** Delay of their start after the pool's start, ms; default 0. */
  startAfterMs?: number;
  /** Number of cells by cold starts: clamp(coldStarts / threshold · increment, minCount, maxCount). */
  reactive?: { minCount: number; maxCount: number; ttlMs: number; threshold: number; increment: number };
}

/** Settings of the containers that are started ahead of need. */
export interface StemCellOptions {
  stemCells: readonly StemCellConfig[];
  /** Whether there are also cells for specs that actions have requested. */
  stemCellsOnDemand: boolean;
  /** Largest number of requested specs with cells on each GPU; default 0. */
  gpuStemCells?: number;
  /** Real memory of all cells with learned modules, and of snapshots of functions, at most, MiB; default: no bound. */
  learnedMiB?: number;
  /** Called if a cell could not be started. */
  failedAhead?: (spec: ContainerSpec, error: unknown) => void;
}

/** What became of the cells of a kind with so much memory, MiB. */
export interface StemCellCounts {
  kind: string;
  memoryMiB: number;
  /** Starts that no cell could serve. */
  coldStarts: number;
  /** Cells that were removed unused. */
  expired: number;
}

interface StemCell {
  container: Container;
  readyMs: number;
}

interface StemCellPool {
  config: StemCellConfig;
  wanted: number;
  cells: StemCell[];
  /** When the cells that are being made will be ready, by the time of the last one, monotonic ms. */
  starts: number[];
  /** Time that a cell takes, ms. */
  startMs: number;
  /** The most real memory that a cell was found to have, MiB; undefined before the first one. */
  measuredMiB: number | undefined;
  /** Starts with its learned modules. */
  readonly asked: StartCount;
  /** Cold starts of this spec since the last check. */
  coldStarts: number;
  /**
   * Whether the cells exist because an action requested such a container; they are given up when no action does any longer.
   */
  demanded: boolean;
  /** Monotonic ms of the last request for a container of this spec. */
  wantedMs: number;
  /** Whether cells are missing for lack of memory. */
  lacksMemory: boolean;
  /** The failures since a cell started the last time; undefined after a start. */
  trouble: { text: string; pauseMs: number; untilMs: number } | undefined;
}

/** Kinds and memory sizes with counts of their own; further ones have none. */
const maxCounted = 200;
const checkEveryMs = 600_000;
const refillAfterMs = 100;
/** Pause after a failed start, which each further failure doubles. */
const firstPauseMs = 1000;
const longestPauseMs = 60_000;
/** Largest number of specs with cells on request; the least recently requested is given up for a new one. */
const maxDemanded = 16;
/** The same of specs with learned modules. */
const maxLearned = 64;
/** Assumed time and memory of a container until they are measured. */
const firstStartMs = 300;
const firstRealMiB = 64;
/** Least memory limit of a container with learned modules that waits for an action, MiB. */
const leastLimitMiB = 96;
const demandedForMs = 600_000;

/**
 * Prewarmed containers per spec, refilled when used (OpenWhisk's ContainerPool). Besides the configured specs, there is a
 * cell for each spec that recently had a cold start, or whose modules (annotation `warm`) no cell had loaded.
 */
export class StemCells implements ContainerStore {
  private readonly pools: StemCellPool[];
  /** By kind and memory, since the process began. */
  private readonly counted = new Map<string, StemCellCounts>();
  private closing = false;
  private readonly pending = new Set<Promise<void>>();

  constructor(
    private readonly factory: ContainerFactory,
    private readonly clock: Clock,
    private readonly options: StemCellOptions,
    private readonly services: StoreServices,
    private readonly logger: Logger,
  ) {
    this.pools = options.stemCells
      .filter((config) => factory.supports(config.spec.kind))
      .map((config) => this.emptyPool(config, false));
    for (const { config } of this.pools) this.countsOf(config.spec);
    this.scheduleCheck();
  }

  /** Starts missing cells, each after its delay. Resolves when the cells without a delay have started or failed. */
  async fill(): Promise<void> {
    for (const pool of this.pools) {
      const { startAfterMs = 0 } = pool.config;
      if (startAfterMs === 0) this.refill(pool);
      else this.clock.setBackgroundTimer(startAfterMs, () => this.refill(pool));
    }
    await Promise.all(this.pending);
  }

  /**
   * A prewarmed container with the modules of `wanted`, which passes to the caller with its memory; undefined if there is
   * none. Notes that it was asked for.
   */
  take(wanted: ContainerSpec): Container | undefined {
    const supersets = this.poolsFor(wanted, 'superset');
    const exact = this.exact(wanted);
    const asked = exact ?? (isPlain(wanted) ? undefined : (supersets[0] ?? this.demand(wanted)));
    const fitting = [...(exact ? [exact] : []), ...supersets].find((pool) => this.cellFor(pool, wanted) !== undefined);
    const cell = this.taken(fitting, wanted);
    if (asked === undefined) return cell;
    asked.wantedMs = this.clock.monotonicMs();
    if (asked.config.spec.learned !== undefined) this.expect(asked);
    // The pool's cells may have been given up for memory, or may have lacked memory.
    else if (asked.cells.length === 0) this.refillSoon(asked);
    return cell;
  }

  /** A prewarmed container with some of the modules of `wanted`, the most, as `take`. */
  takePart(wanted: ContainerSpec): Container | undefined {
    const fitting = this.poolsFor(wanted, 'subset').find((pool) => this.cellFor(pool, wanted) !== undefined);
    return this.taken(fitting, wanted);
  }

  /** Has a cell for the next start with this spec, unless a start there would find one. */
  foresee(spec: ContainerSpec): void {
    if (this.exact(spec) !== undefined) return;
    const pool = this.demand(spec);
    if (pool === undefined) return;
    if (spec.learned !== undefined) this.expect(pool);
    this.refill(pool);
  }

  /** Whether there is a cell with all modules of `wanted`. */
  hasLoaded(wanted: ContainerSpec): boolean {
    const pools = [...this.poolsFor(wanted, 'exact'), ...this.poolsFor(wanted, 'superset')];
    return pools.some((pool) => this.cellFor(pool, wanted) !== undefined);
  }

  /** Whether a cell with the learned modules of `wanted` will be ready soon: within half of the time that it saves. */
  isComing(wanted: ContainerSpec): boolean {
    const withinMs = (wanted.learned?.savesMs ?? 0) / 2;
    const nowMs = this.clock.monotonicMs();
    return [...this.poolsFor(wanted, 'exact'), ...this.poolsFor(wanted, 'superset')].some(
      ({ starts }) => starts.length > 0 && Math.min(...starts) - nowMs < withinMs,
    );
  }

  private cellFor({ cells }: StemCellPool, wanted: ContainerSpec): StemCell | undefined {
    return cells.find(({ container }) => this.services.fits(container, wanted));
  }

  private taken(pool: StemCellPool | undefined, wanted: ContainerSpec): Container | undefined {
    const cell = pool && this.cellFor(pool, wanted);
    if (pool === undefined || cell === undefined) return undefined;
    pool.cells.splice(pool.cells.indexOf(cell), 1);
    this.refillSoon(pool);
    return cell.container;
  }

  /** Counts a cold start, which no stem cell could serve. */
  noteColdStart(spec: ContainerSpec): void {
    this.countsOf(spec).coldStarts++;
    const pool = this.exact(spec);
    if (pool !== undefined) pool.coldStarts++;
    else if (spec.learned === undefined) this.demand(spec);
  }

  /** Counts by kind and memory, of configured cells and of specs that had a cold start. */
  counts(): Iterable<Readonly<StemCellCounts>> {
    return this.counted.values();
  }

  /** Real memory of the cells with learned modules, MiB. */
  learnedMiB(): number {
    const learned = this.pools.filter(({ config }) => config.spec.learned !== undefined);
    return learned.reduce((sum, { cells, measuredMiB = firstRealMiB }) => sum + cells.length * measuredMiB, 0);
  }

  private countsOf({ kind, memoryMiB }: ContainerSpec): StemCellCounts {
    const key = `${kind} ${memoryMiB}`;
    let counts = this.counted.get(key);
    if (counts === undefined) {
      counts = { kind, memoryMiB, coldStarts: 0, expired: 0 };
      // The sizes of memory that actions ask for are any.
      if (this.counted.size < maxCounted) this.counted.set(key, counts);
    }
    return counts;
  }

  list(): Container[] {
    return this.pools.flatMap(({ cells }) => cells.map(({ container }) => container));
  }

  has(container: Container): boolean {
    return this.holderOf(container) !== undefined;
  }

  replace(container: Container): void {
    const pool = this.holderOf(container);
    if (pool === undefined) return;
    pool.cells = pool.cells.filter((cell) => cell.container !== container);
    this.services.removals.remove(container);
    this.refillSoon(pool);
  }

  /** Total memory of the cells, MiB. */
  heldMiB(memoryOf: Measure): number {
    return this.pools.flatMap(({ cells }) => cells).reduce((sum, { container }) => sum + memoryOf(container.spec), 0);
  }

  /**
   * Destroys cells with a total of `memoryMiB`, if there are enough; returns their memory, MiB. `expendable`: only cells on
   * request without modules that an action has named.
   */
  giveUp(memoryMiB: number, which: 'expendable' | 'all', memoryOf: Measure): number {
    let freedMiB = 0;
    for (const pool of this.pools) {
      const { cells, config, demanded } = pool;
      if (which === 'expendable' && !(demanded && isExpendable(config.spec))) continue;
      while (memoryOf(config.spec) > 0 && freedMiB < memoryMiB && cells.length > 0) {
        pool.lacksMemory = true;
        for (const { container } of cells.splice(-1)) {
          freedMiB += memoryOf(container.spec);
          this.services.removals.remove(container);
        }
      }
    }
    return freedMiB;
  }

  /** Starts cells that lacked memory, as far as there is memory now. */
  refillLacking(): void {
    for (const pool of this.pools) if (pool.lacksMemory) this.refill(pool);
  }

  /** Starts no more cells, and destroys the present ones. */
  async close(): Promise<void> {
    this.closing = true;
    await Promise.all(this.pending);
    for (const { cells } of this.pools)
      for (const { container } of cells.splice(0)) this.services.removals.remove(container);
  }

  private emptyPool(config: StemCellConfig, demanded: boolean): StemCellPool {
    const wantedMs = this.clock.monotonicMs();
    return {
      config,
      wanted: config.initialCount,
      cells: [],
      starts: [],
      startMs: firstStartMs + (config.spec.learned?.savesMs ?? 0),
      measuredMiB: undefined,
      asked: new StartCount(),
      coldStarts: 0,
      demanded,
      wantedMs,
      lacksMemory: false,
      trouble: undefined,
    };
  }

  private holderOf(container: Container): StemCellPool | undefined {
    return this.pools.find(({ cells }) => cells.some((cell) => cell.container === container));
  }

  private exact(spec: ContainerSpec): StemCellPool | undefined {
    return this.pools.find(({ config }) => this.factory.match(config.spec, spec) === 'exact');
  }

  /** The pools that match so: first those with the most of the wanted imports, or the fewest others. */
  private poolsFor(wanted: ContainerSpec, match: Exclude<Match, 'none'>): StemCellPool[] {
    const found = this.pools.filter(({ config }) => this.factory.match(config.spec, wanted) === match);
    const sign = match === 'subset' ? -1 : 1;
    const count = ({ config }: StemCellPool): number => sign * config.spec.imports.length;
    return found.sort((a, b) => count(a) - count(b));
  }

  /** Makes a pool for the spec; undefined if there is none for such a spec. */
  private demand(spec: ContainerSpec): StemCellPool | undefined {
    if (!this.options.stemCellsOnDemand) return undefined;
    const isLearned = spec.learned !== undefined;
    const demanded = this.pools.filter((pool) => pool.demanded).sort((a, b) => a.wantedMs - b.wantedMs);
    if (spec.gpu !== undefined) {
      // A cell on several devices would keep other containers off all of them.
      if (spec.gpu.devices.length > 1) return undefined;
      const { gpuStemCells = 0 } = this.options;
      const beside = demanded.filter((pool) => deviceMemoryBeside(spec, pool.config.spec) > 0);
      if (gpuStemCells === 0) return undefined;
      const [first] = beside;
      if (first !== undefined && beside.length >= gpuStemCells) this.giveUpPool(first);
    }
    const isAlike = ({ config }: StemCellPool): boolean => (config.spec.learned !== undefined) === isLearned;
    const left = demanded.filter((pool) => this.pools.includes(pool) && isAlike(pool));
    const [longestUnwanted] = isLearned ? ofLargest(left) : left;
    const bound = isLearned ? maxLearned : maxDemanded;
    if (longestUnwanted !== undefined && left.length >= bound) this.giveUpPool(longestUnwanted);
    const reactive = { minCount: 1, maxCount: 4, ttlMs: demandedForMs, threshold: 1, increment: 1 };
    const pool = this.emptyPool({ spec, initialCount: 1, reactive }, true);
    this.pools.push(pool);
    this.refillSoon(pool);
    return pool;
  }

  /** Notes a start with a pool's learned modules. */
  private expect(pool: StemCellPool): void {
    pool.asked.add(this.clock.monotonicMs());
    this.replan();
  }

  /** Decides how many cells with learned modules there are of each set. */
  private replan(): void {
    const nowMs = this.clock.monotonicMs();
    const learned = this.pools.filter(({ config }) => config.spec.learned !== undefined);
    const weighed = learned.map(({ config, asked, measuredMiB = firstRealMiB }) => ({
      namespace: config.spec.learned?.namespace ?? '',
      savesMs: config.spec.learned?.savesMs ?? 0,
      expected: asked.expected(nowMs),
      memoryMiB: measuredMiB,
    }));
    const counts = planReady(weighed, (this.options.learnedMiB ?? Infinity) - this.services.snapshotsMiB);
    for (const [at, pool] of learned.entries()) {
      pool.wanted = counts[at] ?? 0;
      for (const { container } of pool.cells.splice(pool.wanted)) this.services.removals.remove(container);
      if (pool.cells.length + pool.starts.length < pool.wanted) this.refillSoon(pool);
    }
  }

  private giveUpPool(pool: StemCellPool): void {
    pool.wanted = 0;
    this.pools.splice(this.pools.indexOf(pool), 1);
    for (const { container } of pool.cells.splice(0)) this.services.removals.remove(container);
  }

  private refillSoon(pool: StemCellPool): void {
    this.clock.setBackgroundTimer(refillAfterMs, () => this.refill(pool));
  }

  private refill(pool: StemCellPool): void {
    if (pool.trouble !== undefined && this.clock.monotonicMs() < pool.trouble.untilMs) return;
    pool.lacksMemory = false;
    while (!this.closing && pool.cells.length + pool.starts.length < pool.wanted) {
      const spec = this.cellSpec(pool);
      if (!this.services.memory.claim(spec)) {
        pool.lacksMemory = true;
        return;
      }
      pool.starts.push(this.clock.monotonicMs() + pool.startMs);
      const start = this.start(pool, spec).finally(() => this.pending.delete(start));
      this.pending.add(start);
    }
  }

  /**
   * The spec of a new cell. One with learned modules whose memory limit can be set again has, and claims, what suffices until
   * an action gets it.
   */
  private cellSpec({ config: { spec }, measuredMiB }: StemCellPool): ContainerSpec {
    if (measuredMiB === undefined) return spec;
    const memoryMiB = Math.min(spec.memoryMiB, Math.max(leastLimitMiB, Math.ceil(measuredMiB * 2)));
    const smaller = { ...spec, memoryMiB };
    return this.factory.match(smaller, spec) === 'exact' ? smaller : spec;
  }

  private async start(pool: StemCellPool, spec: ContainerSpec): Promise<void> {
    const startedMs = this.clock.monotonicMs();
    try {
      const container = await this.factory.prewarm(spec);
      const isTooMany = spec.learned !== undefined && pool.cells.length >= pool.wanted;
      if (isTooMany || !this.pools.includes(pool)) return this.services.removals.remove(container);
      void container.giveWay(false);
      pool.startMs = this.clock.monotonicMs() - startedMs;
      if (pool.trouble !== undefined) this.logger.info({ kind: spec.kind }, 'stem cells start again');
      pool.trouble = undefined;
      pool.cells.push({ container, readyMs: this.clock.monotonicMs() });
      this.services.watch.set(container, () => this.replace(container));
      if (spec.learned !== undefined) void this.measure(pool, container);
      this.services.added();
    } catch (error) {
      this.services.memory.release(spec);
      // It may have lacked memory on the way.
      if (pool.measuredMiB !== undefined && spec.memoryMiB < pool.config.spec.memoryMiB) pool.measuredMiB *= 2;
      else this.noteFailure(pool, spec, error);
    } finally {
      pool.starts.shift();
    }
  }

  /** Has the pool pause, and logs the reason if it is another one than before. */
  private noteFailure(pool: StemCellPool, spec: ContainerSpec, error: unknown): void {
    this.options.failedAhead?.(spec, error);
    const nowMs = this.clock.monotonicMs();
    const text = String(error);
    const { text: before, pauseMs: lastMs = 0, untilMs = nowMs } = pool.trouble ?? {};
    if (text !== before) this.logger.warn({ kind: spec.kind, error: text }, 'stem cells cannot be started');
    // Cells that were started together fail together.
    const pauses = nowMs < untilMs;
    const pauseMs = pauses ? lastMs : Math.min(longestPauseMs, Math.max(firstPauseMs, lastMs * 2));
    // Cells that are taken in the pause are replaced at its end.
    if (!pauses) this.clock.setBackgroundTimer(pauseMs, () => this.refill(pool));
    pool.trouble = { text, pauseMs, untilMs: nowMs + pauseMs };
  }

  private async measure(pool: StemCellPool, container: Container): Promise<void> {
    const realMiB = await container.memoryMiB?.();
    if (realMiB === undefined || this.closing) return;
    pool.measuredMiB = Math.max(1, realMiB, pool.measuredMiB ?? 0);
    this.replan();
  }

  private scheduleCheck(): void {
    this.clock.setBackgroundTimer(checkEveryMs, () => {
      if (this.closing) return;
      for (const pool of [...this.pools]) this.check(pool);
      this.scheduleCheck();
    });
  }

  private check(pool: StemCellPool): void {
    const { reactive, initialCount } = pool.config;
    if (pool.demanded && this.clock.monotonicMs() - pool.wantedMs > demandedForMs) return this.giveUpPool(pool);
    if (pool.config.spec.learned !== undefined) return this.replan();
    if (reactive !== undefined) {
      const grown = Math.floor(pool.coldStarts / reactive.threshold) * reactive.increment;
      pool.wanted =
        pool.coldStarts === 0 ? initialCount : Math.min(reactive.maxCount, Math.max(reactive.minCount, grown));
      const nowMs = this.clock.monotonicMs();
      const expired = pool.cells
        .filter((cell) => nowMs - cell.readyMs > reactive.ttlMs)
        .slice(0, Math.max(0, pool.cells.length - pool.wanted));
      for (const cell of expired) {
        pool.cells.splice(pool.cells.indexOf(cell), 1);
        this.countsOf(pool.config.spec).expired++;
        this.services.removals.remove(cell.container);
      }
    }
    pool.coldStarts = 0;
    this.refill(pool);
  }
}

/** The pools of namespaces that have most of them. */
function ofLargest(pools: readonly StemCellPool[]): StemCellPool[] {
  const of = ({ config }: StemCellPool): string => config.spec.learned?.namespace ?? '';
  const counts = new Map<string, number>();
  for (const pool of pools) counts.set(of(pool), (counts.get(of(pool)) ?? 0) + 1);
  const most = Math.max(...counts.values());
  return pools.filter((pool) => counts.get(of(pool)) === most);
}

/** Whether only guesses want its containers: plain ones of a cold start, or ones with learned imports. */
function isExpendable(spec: ContainerSpec): boolean {
  return isPlain(spec) || spec.learned !== undefined;
}

function isPlain({ imports, cuda }: ContainerSpec): boolean {
  return imports.length === 0 && !cuda;
}
