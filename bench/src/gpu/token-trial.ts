// Three processes with one workload: one without kernel tokens, and two under them.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Share } from '@gpuwhisk/common/gpu';
import type { TokenClient, TokenServer } from '@gpuwhisk/invoker/gpu-agent/enforcers/tokens/token-server';
import { median } from '../statistics.js';
import { WorkerError, type GpuWorker, type Times } from './gpu-worker.js';

const periodMs = 5;
/** Blocks in a period, more than any device launches. */
const unlimited = 1_000_000_000;
const besideRuns = 3;
/** When shares change after the start of the processes, over which time they are looked at, and how often. */
const changeAfterMs = 500;
const windowMs = 100;
const lookMs = 10;

/** The shares of the two processes under tokens, fractions of what one launches alone. */
export type Shares = readonly [number, number];

/** Times, s. */
interface TrialTimes {
  round: number;
  beside: number;
  change: number;
}

/** A share of a device by tokens; `maxTokens`: blocks in a period alone. */
function shareOf(fraction: number, memoryMiB: number, maxTokens = unlimited): Share {
  return { shareClass: 100, smRequest: fraction, smLimit: fraction, memoryMiB, tokens: { maxTokens } };
}

/** Variables of a process under tokens, which has the whole device at first. */
export function heldEnvironment(
  server: TokenServer,
  { device, library, memoryMiB }: { device: string; library: string; memoryMiB: number },
): NodeJS.ProcessEnv {
  return {
    LD_PRELOAD: library,
    GPUWHISK_TOKENS_SOCKET: server.socketPath,
    GPUWHISK_TOKENS_TICKET: server.ticketFor(device, shareOf(1, memoryMiB)),
  };
}

/** The cost of tokens for a workload. */
interface Overhead {
  /** Added part of an iteration's time, median over the rounds. */
  overhead: number;
  /** Blocks that it launches alone in a period. */
  blocks: number;
}

/** A process under tokens. */
interface Held {
  worker: GpuWorker;
  client: TokenClient;
}

/** Measures one workload after the other in the same three processes. */
export class TokenTrial {
  private constructor(
    private readonly server: TokenServer,
    private readonly plain: GpuWorker,
    private readonly held: readonly [Held, Held],
    private readonly times: TrialTimes,
    private loaded: string,
  ) {}

  /** Loads the first workload. Rejects with WorkerError if it fails or the interception library is not in the processes. */
  static async open(
    server: TokenServer,
    workload: string,
    workers: { plain: GpuWorker; held: readonly [GpuWorker, GpuWorker] },
    times: TrialTimes,
  ): Promise<TokenTrial> {
    await loadAll([workers.plain, ...workers.held], workload);
    const heldOf = (worker: GpuWorker): Held => {
      const client = server.clientOf(worker.pid);
      if (client === undefined) throw new WorkerError(`the interception library is not in process ${worker.pid}`);
      return { worker, client };
    };
    return new TokenTrial(server, workers.plain, [heldOf(workers.held[0]), heldOf(workers.held[1])], times, workload);
  }

  /** Loads a workload, and lets all processes have the whole device. */
  async load(workload: string): Promise<void> {
    this.share([1, 1]);
    if (workload === this.loaded) return;
    this.loaded = '';
    await loadAll([this.plain, ...this.held.map(({ worker }) => worker)], workload);
    this.loaded = workload;
  }

  /** Compares a process under tokens with the one without, in turns. */
  async overhead(rounds: number): Promise<Overhead> {
    const [{ worker, client }] = this.held;
    const before = this.takenBy(client);
    const pairs: { plain: Times; under: Times }[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const order = round % 2 === 0 ? [this.plain, worker] : [worker, this.plain];
      const times = new Map<GpuWorker, Times>();
      for (const each of order) times.set(each, await each.run(this.times.round));
      const [plain, under] = [times.get(this.plain), times.get(worker)];
      if (plain && under) pairs.push({ plain, under });
    }
    const ranMs = pairs.reduce((sum, { under }) => sum + under.iterations * under.meanMs, 0);
    return {
      overhead: median(pairs.map(({ plain, under }) => under.medianMs / plain.medianMs)) - 1,
      blocks: ((this.takenBy(client) - before) * periodMs) / ranMs,
    };
  }

  /**
   * The rates of both processes beside each other, over the rate of one alone just before: medians of three runs. `blocks`:
   * those of a period alone.
   */
  async beside(shares: Shares, blocks: number): Promise<Shares> {
    const [one, other] = this.held;
    const runs: Shares[] = [];
    for (let run = 0; run < besideRuns; run += 1) {
      this.share([1, 1]);
      const { perS } = await one.worker.run(this.times.round);
      this.share(shares, blocks);
      const times = await Promise.all([one.worker.run(this.times.beside), other.worker.run(this.times.beside)]);
      runs.push([times[0].perS / perS, times[1].perS / perS]);
    }
    return [median(runs.map(([first]) => first)), median(runs.map(([, second]) => second))];
  }

  /**
   * The time from a swap of the shares of running processes until both have launched, for 100 ms, blocks within `mostError`
   * of their new shares; ms, or undefined if that does not come.
   */
  async change(shares: Shares, blocks: number, mostError: number): Promise<number | undefined> {
    this.share(shares, blocks);
    const [one, other] = this.held;
    const ended = new AbortController();
    const work = Promise.all([one.worker.run(this.times.change), other.worker.run(this.times.change)]).finally(() =>
      ended.abort(),
    );
    const watch = this.watch(shares, blocks, mostError, ended.signal);
    await work;
    return watch;
  }

  private async watch(
    [first, second]: Shares,
    blocks: number,
    mostError: number,
    ended: AbortSignal,
  ): Promise<number | undefined> {
    const looks: { atMs: number; taken: Shares }[] = [];
    const startMs = performance.now();
    let changedMs: number | undefined;
    while (!ended.aborted) {
      const atMs = performance.now();
      const now = { atMs, taken: [this.takenBy(this.held[0].client), this.takenBy(this.held[1].client)] as const };
      if (changedMs === undefined && atMs - startMs >= changeAfterMs) {
        this.share([second, first], blocks);
        changedMs = atMs;
      }
      const since = looks.findLast((look) => look.atMs <= atMs - windowMs);
      if (changedMs !== undefined && since !== undefined) {
        const shareAt = (i: 0 | 1): number =>
          ((now.taken[i] - since.taken[i]) * periodMs) / (blocks * (atMs - since.atMs));
        const isHeld = Math.abs(shareAt(0) - second) <= mostError && Math.abs(shareAt(1) - first) <= mostError;
        if (isHeld) return atMs - changedMs;
      }
      looks.push(now);
      await sleep(lookMs);
    }
    return undefined;
  }

  private takenBy(client: TokenClient): number {
    return this.server.figuresOf(client).taken;
  }

  private share(shares: Shares, blocks?: number): void {
    const maxTokens = blocks === undefined ? unlimited : Math.max(1, Math.round(blocks));
    this.held.forEach(({ client }, i) => {
      const { memoryMiB } = client.ticket.share;
      this.server.adjust(client, shareOf(shares[i] ?? 1, memoryMiB, maxTokens));
    });
  }
}

async function loadAll(workers: readonly GpuWorker[], workload: string): Promise<void> {
  await Promise.all(workers.map((worker) => worker.load(workload)));
}
