import type { Config } from '@gpuwhisk/common/config';
import type { Identity } from '@gpuwhisk/common/entities/identity';
import { tooManyGpuSeconds, tooManyGpusInFlight } from '@gpuwhisk/common/errors';
import type { ApiError } from '@gpuwhisk/common/errors';
import type { GpuNeed } from '@gpuwhisk/common/gpu';
import { gpuSpendingCounters } from '@gpuwhisk/common/gpu';
import type { Awaitable, ClusterState, Holds, WindowCounters } from '@gpuwhisk/common/state/cluster-state';

/** The GPUs that a namespace's activations in flight ask for together, and the GPU time that all of its activations have had. */
export interface GpuUse {
  activations: number;
  gpus: number;
  memoryMiB: number;
  /** In this minute, ms of whole GPUs; 0 where there is no limit to it. */
  spentMs: number;
}

/** A namespace's limit, and what it is of. */
interface GpuLimit {
  name: 'concurrentGpuInvocations' | 'concurrentGpus' | 'concurrentGpuMemory';
  allowed: number | undefined;
  count: number;
}

/** Counts the GPUs that each namespace's activations in flight ask for, and their GPU time, in the state of the cluster. */
export class GpuInFlight {
  private readonly holds: Holds;
  private readonly spending: WindowCounters;

  constructor(
    state: ClusterState,
    private readonly limits: Config['limits'],
  ) {
    this.holds = state.holds('gpuInFlight');
    this.spending = gpuSpendingCounters(state);
  }

  /** Counts an activation of the namespace for `ttlMs` at most, and gives what all of its ask for and have had. */
  hold(identity: Identity, activationId: string, need: GpuNeed, ttlMs: number): Awaitable<GpuUse> {
    const count = this.holds.hold(identity.namespace.uuid, tokenOf(activationId, need), ttlMs);
    return typeof count === 'number' ? this.use(identity) : count.then(() => this.use(identity));
  }

  /** The GPU need of each activation in flight, of all namespaces; CPU activations are not there. */
  async needs(): Promise<Map<string, Pick<GpuNeed, 'gpus' | 'memoryMiB'>>> {
    const needs = new Map<string, Pick<GpuNeed, 'gpus' | 'memoryMiB'>>();
    for (const { token } of await this.holds.all()) {
      const [activationId = '', gpus, memoryMiB] = token.split(' ');
      needs.set(activationId, { gpus: Number(gpus), memoryMiB: Number(memoryMiB) / Number(gpus) });
    }
    return needs;
  }

  release(key: string, activationId: string, need: Pick<GpuNeed, 'gpus' | 'memoryMiB'>): Awaitable<void> {
    return this.holds.release(key, tokenOf(activationId, need));
  }

  /** Why a namespace may not have as much in flight, or no more in this minute; undefined if it may. */
  problem(identity: Identity, { activations, gpus, memoryMiB, spentMs }: GpuUse): ApiError | undefined {
    const { limits } = this;
    const { limits: own } = identity;
    const seconds = this.secondsAllowed(identity);
    if (seconds !== undefined && spentMs >= seconds * 1000)
      return tooManyGpuSeconds(Math.floor(spentMs / 1000), seconds);
    const all: GpuLimit[] = [
      {
        name: 'concurrentGpuInvocations',
        allowed: own.concurrentGpuInvocations ?? limits.concurrentGpuInvocations,
        count: activations,
      },
      { name: 'concurrentGpus', allowed: own.concurrentGpus ?? limits.concurrentGpus, count: gpus },
      {
        name: 'concurrentGpuMemory',
        allowed: own.concurrentGpuMemory ?? limits.concurrentGpuMemoryMiB,
        count: memoryMiB,
      },
    ];
    const over = all.find(({ allowed, count }) => allowed !== undefined && count > allowed);
    return over?.allowed === undefined ? undefined : tooManyGpusInFlight(over.name, over.count, over.allowed);
  }

  private use(identity: Identity): Awaitable<GpuUse> {
    const { name, uuid } = identity.namespace;
    const tokens = this.holds.tokens(uuid);
    const spentMs = this.secondsAllowed(identity) === undefined ? 0 : this.spending.add(name, 0);
    if (!(tokens instanceof Promise) && typeof spentMs === 'number') return sum(tokens, spentMs);
    return Promise.all([tokens, spentMs]).then((both) => sum(...both));
  }

  private secondsAllowed({ limits }: Identity): number | undefined {
    return limits.gpuSecondsPerMinute ?? this.limits.gpuSecondsPerMinute;
  }
}

/** A holder that tells what it holds: a sum needs nothing else. */
function tokenOf(activationId: string, { gpus, memoryMiB }: Pick<GpuNeed, 'gpus' | 'memoryMiB'>): string {
  return `${activationId} ${gpus} ${gpus * memoryMiB}`;
}

function sum(tokens: readonly string[], spentMs: number): GpuUse {
  const use: GpuUse = { activations: tokens.length, gpus: 0, memoryMiB: 0, spentMs };
  for (const token of tokens) {
    const [, gpus, memoryMiB] = token.split(' ');
    use.gpus += Number(gpus);
    use.memoryMiB += Number(memoryMiB);
  }
  return use;
}
