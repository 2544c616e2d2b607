import { gpuDeciderKey, gpuDeciderTable } from '@gpuwhisk/common/gpu';
import type { Placement } from '@gpuwhisk/common/gpu';
import type { Logger } from '@gpuwhisk/common/logging';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import type { ClusterState } from '@gpuwhisk/common/state/cluster-state';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { GpuTable } from '../state/gpu-table.js';
import type { LeaseKeeper } from '../../cluster/lease.js';

export interface GpuFenceDependencies {
  state: ClusterState;
  table: GpuTable;
  clock: Clock;
  logger: Logger;
  lease: Pick<LeaseKeeper, 'epoch'>;
}

/** Agents that start, or that missed the news, find the epoch for so long after it was told last, ms. */
const keptMs = 60_000;
const lookMs = 50;

/**
 * Keeps a decider that has begun from placing again what the one before it has placed: agents are told of its epoch, take no
 * older placement from then on, and tell which activations they have. An agent that is not heard of, and may not have heard,
 * is not waited for once its row is out of date (5 s).
 */
export class GpuFence {
  constructor(private readonly dependencies: GpuFenceDependencies) {}

  /** Tells agents of the epoch, if this controller decides. */
  announce(): void {
    const { state, lease, logger } = this.dependencies;
    const { epoch } = lease;
    if (epoch === undefined) return;
    state.setRow(gpuDeciderTable, gpuDeciderKey, epoch, keptMs).catch((error: unknown) => {
      logger.warn({ error: String(error) }, 'the nodes with GPUs were not told who decides; they are told again');
    });
  }

  /** Resolves when this controller decides and all agents that are heard of know its epoch, or once `isOver` says so. */
  async passed(isOver: () => boolean): Promise<void> {
    const { clock, lease, table } = this.dependencies;
    while (!isOver()) {
      const { epoch: own } = lease;
      // One of an earlier release does not tell.
      if (own !== undefined && table.nodes().every(({ epoch = own }) => epoch >= own)) return;
      await sleep(clock, lookMs);
    }
  }

  /** Whether a node has an activation, by another placement than the one that it comes back from. */
  isInHand(message: ActivationMessage): boolean {
    return this.dependencies.table
      .nodes()
      .flatMap(({ inHand = [] }) => inHand)
      .some((held) => held.activationId === message.activationId && !isCopyOf(message, held));
  }
}

/** Whether a message comes back from where `placement` has sent it. */
export function isCopyOf({ gpu }: ActivationMessage, placement: Pick<Placement, 'at' | 'epoch' | 'version'>): boolean {
  return gpu?.at === placement.at && gpu.epoch === placement.epoch && gpu.version === placement.version;
}
