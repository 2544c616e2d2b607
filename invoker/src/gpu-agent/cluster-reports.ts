import { gpuRowTtlMs, gpuTable, gpuSpendingCounters, workloadTable } from '@gpuwhisk/common/gpu';
import type { NodeStatus, Workload } from '@gpuwhisk/common/gpu';
import type { JsonValue } from '@gpuwhisk/common/json';
import type { Logger } from '@gpuwhisk/common/logging';
import type { ClusterState, WindowCounters } from '@gpuwhisk/common/state/cluster-state';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';
import type { GpuContainer } from './gpu-containers.js';
import type { HostProcesses } from './host/host-processes.js';

interface NodeRowParts {
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

/** Counts each namespace's use of this node's GPUs, share times time, and tells the cluster. Samples are not charged. */
export class Spending {
  private readonly counters: WindowCounters;
  /** By busy container, monotonic ms up to which it is counted. */
  private readonly countedMs = new Map<string, number>();
  /** By namespace, ms of a whole GPU that the cluster is not told of yet. */
  private readonly due = new Map<string, number>();

  constructor(
    state: ClusterState,
    private readonly clock: Pick<Clock, 'monotonicMs'>,
  ) {
    this.counters = gpuSpendingCounters(state);
  }

  /** A container has something to run; to be called again for more at once, or later. */
  began(container: string): void {
    if (!this.countedMs.has(container)) this.countedMs.set(container, this.clock.monotonicMs());
  }

  /** Counts what a container has had until now. */
  count(one: GpuContainer): void {
    const { container, grant, share, users, lastUser } = one;
    const sinceMs = this.countedMs.get(container.id);
    if (sinceMs === undefined) return;
    const nowMs = this.clock.monotonicMs();
    if (users.size > 0) this.countedMs.set(container.id, nowMs);
    else this.countedMs.delete(container.id);
    if (lastUser === undefined || lastUser.isSample === true) return;
    const spentMs = (nowMs - sinceMs) * share.smLimit * grant.devices.length;
    this.due.set(lastUser.namespace, (this.due.get(lastUser.namespace) ?? 0) + spentMs);
  }

  /** Counts what a container had that has ended, in the middle of a run or not. */
  left(one: GpuContainer): void {
    this.count(one);
    this.countedMs.delete(one.container.id);
  }

  /** Tells the cluster; what it cannot be told is told the next time. */
  async tell(containers: readonly GpuContainer[]): Promise<void> {
    const living = new Set(containers.map(({ container }) => container.id));
    for (const id of this.countedMs.keys()) if (!living.has(id)) this.countedMs.delete(id);
    for (const one of containers) this.count(one);
    for (const [namespace, ms] of [...this.due]) {
      this.due.delete(namespace);
      try {
        await this.counters.add(namespace, Math.round(ms));
      } catch {
        this.due.set(namespace, ms + (this.due.get(namespace) ?? 0)); // The state is away: its owner says so.
      }
    }
  }
}

/** What looking for workloads that have ended takes. */
interface EndedWorkloadsParts {
  invoker: string;
  state: ClusterState;
  processes: HostProcesses;
  clock: Clock;
  logger: Logger;
}

/** Looks from one to the next at the workloads. */
const every = 5;
/** Who started one tells its process at once; after so long it never will, ms. */
const untoldForMs = 60_000;

/**
 * Finds workloads of this node that were started with `wsk gpu workload run` and have ended without a word, as when that
 * was killed, and says so in their table: the keeper of the registrations removes them then.
 */
export class EndedWorkloads {
  private looks = 0;

  constructor(private readonly parts: EndedWorkloadsParts) {}

  /** To be called at every look at the devices. Never rejects. */
  async look(): Promise<void> {
    if (++this.looks % every !== 0) return;
    const { state, invoker, logger } = this.parts;
    try {
      for (const [id, row] of await state.rows(workloadTable)) {
        const workload = row as unknown as Workload;
        const isOurs = workload.invoker === invoker && workload.origin === 'started';
        if (!isOurs || !(await this.hasEnded(workload))) continue;
        // Said again until it is forgotten.
        if (workload.ended !== true) {
          logger.info({ workload: id, name: workload.name, pid: workload.pid }, 'a workload has ended without a word');
        }
        await state.setRow(workloadTable, id, { ...workload, ended: true } as unknown as JsonValue);
      }
    } catch (error) {
      logger.error({ error: String(error) }, 'the table of workloads cannot be read or written');
    }
  }

  private async hasEnded({ pid, processStart, since }: Workload): Promise<boolean> {
    const { processes, clock } = this.parts;
    if (pid === undefined) return clock.now() - since > untoldForMs;
    const start = await processes.startOf(pid);
    // Its number may be another process's by now.
    return start === undefined || (processStart !== undefined && start !== processStart);
  }
}
