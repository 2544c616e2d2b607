import { gpuRowTtlMs, gpuTable } from '@gpuwhisk/common/gpu';
import type { NodeStatus } from '@gpuwhisk/common/gpu';
import type { JsonValue } from '@gpuwhisk/common/json';
import type { Logger } from '@gpuwhisk/common/logging';
import type { ClusterState } from '@gpuwhisk/common/state/cluster-state';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';

export interface NodeRowParts {
  /** The topic of the invoker: the row's key. */
  invoker: string;
  state: ClusterState;
  clock: Clock;
  logger: Logger;
}

/** What changes in quick succession is told together, so many ms after the first. */
const soonMs = 20;

/** A node's row in the GPU table: `read` says what is to be in it. */
export class NodeRow {
  private version = 0;
  private timer: Timer | undefined;
  private closed = false;
  /** Monotonic ms at which the last write that succeeded began. */
  private writtenMs = -Infinity;

  constructor(
    private readonly parts: NodeRowParts,
    private readonly read: () => Omit<NodeStatus, 'invoker' | 'version' | 'at'>,
  ) {}

  /** Whether the row has expired: the cluster's state was not reached for the row's time to live. */
  get isOutOfDate(): boolean {
    return this.parts.clock.monotonicMs() - this.writtenMs >= gpuRowTtlMs;
  }

  /** Something has changed. */
  writeSoon(): void {
    if (this.closed || this.timer !== undefined) return;
    this.timer = this.parts.clock.setBackgroundTimer(soonMs, () => {
      this.timer = undefined;
      void this.write();
    });
  }

  /** Never rejects. */
  async write(): Promise<void> {
    if (this.closed) return;
    const { invoker, state, clock, logger } = this.parts;
    const row: NodeStatus = { invoker, version: ++this.version, at: clock.now(), ...this.read() };
    const beganMs = clock.monotonicMs();
    try {
      await state.setRow(gpuTable, invoker, row as unknown as JsonValue, gpuRowTtlMs);
      this.writtenMs = beganMs;
    } catch (error) {
      logger.error({ error: String(error) }, 'the GPU table could not be written');
    }
  }

  /** Removes the row; it is written no more. */
  async close(): Promise<void> {
    this.closed = true;
    this.timer?.cancel();
    await this.parts.state.deleteRow(gpuTable, this.parts.invoker);
  }
}
