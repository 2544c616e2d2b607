import type { Config } from '@gpuwhisk/common/config';
import type { Identity } from '@gpuwhisk/common/entities/identity';
import { tooManyGpusInFlight } from '@gpuwhisk/common/errors';
import type { ApiError } from '@gpuwhisk/common/errors';
import type { GpuNeed } from '@gpuwhisk/common/gpu';
import type { Awaitable, ClusterState, Holds } from '@gpuwhisk/common/state/cluster-state';

/** What the activations of a namespace in flight ask of GPUs together. */
export interface GpuUse {
  activations: number;
  gpus: number;
  memoryMiB: number;
}

/** A namespace's limit, and what it is of. */
interface GpuLimit {
  name: 'concurrentGpuInvocations' | 'concurrentGpus' | 'concurrentGpuMemory';
  allowed: number | undefined;
  count: number;
}

/** What of the GPUs each namespace's activations in flight ask for, in the state of the cluster. */
export class GpuInFlight {
  private readonly holds: Holds;

  constructor(
    state: ClusterState,
    private readonly limits: Config['limits'],
  ) {
    this.holds = state.holds('gpuInFlight');
  }

  /** Counts an activation of the namespace `key` for `ttlMs` at most, and gives what all of its ask for. */
  hold(key: string, activationId: string, need: GpuNeed, ttlMs: number): Awaitable<GpuUse> {
    const count = this.holds.hold(key, tokenOf(activationId, need), ttlMs);
    return typeof count === 'number' ? this.use(key) : count.then(() => this.use(key));
  }

  release(key: string, activationId: string, need: GpuNeed): Awaitable<void> {
    return this.holds.release(key, tokenOf(activationId, need));
  }

  /** Why a namespace may not have as much in flight; undefined if it may. */
  problem({ limits: own }: Identity, { activations, gpus, memoryMiB }: GpuUse): ApiError | undefined {
    const { limits } = this;
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

  private use(key: string): Awaitable<GpuUse> {
    const tokens = this.holds.tokens(key);
    return tokens instanceof Promise ? tokens.then(sum) : sum(tokens);
  }
}

/** A holder that tells what it holds: whoever sums up needs nothing else. */
function tokenOf(activationId: string, { gpus, memoryMiB }: GpuNeed): string {
  return `${activationId} ${gpus} ${gpus * memoryMiB}`;
}

function sum(tokens: readonly string[]): GpuUse {
  const use: GpuUse = { activations: tokens.length, gpus: 0, memoryMiB: 0 };
  for (const token of tokens) {
    const [, gpus, memoryMiB] = token.split(' ');
    use.gpus += Number(gpus);
    use.memoryMiB += Number(memoryMiB);
  }
  return use;
}
