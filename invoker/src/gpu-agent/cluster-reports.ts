import { gpuRowTtlMs, gpuTable, gpuSpendingCounters, workloadTable } from '@gpuwhisk/common/gpu';
import type { NodeStatus, Workload } from '@gpuwhisk/common/gpu';
import { writeRow } from '@gpuwhisk/common/gpu-rows';
import type { JsonValue } from '@gpuwhisk/common/json';
import type { Logger } from '@gpuwhisk/common/logging';
import type { ClusterState, WindowCounters } from '@gpuwhisk/common/state/cluster-state';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';
import type { GpuContainer } from './gpu-containers.js';
import type { HostProcesses } from './host/host-processes.js';
import type { UseCounts } from './node-use.js';
import type { WorkloadAttestation } from './workload-attestation.js';

interface NodeRowParts {
  /** The topic of the invoker: the row's key. */
  invoker: string;
  state: ClusterState;
  clock: Clock;
  logger: Logger;
}

/** Delay of a write after the first change, ms; changes in between are written together. */
const soonMs = 20;

/** A node's row in the GPU table; `read` returns its present contents. */
export class NodeRow {
  private version = 0;
  private timer: Timer | undefined;
  private closed = false;
  /** Monotonic ms at which the last successful write began. */
  private writtenMs = -Infinity;

  constructor(
    private readonly parts: NodeRowParts,
    private readonly read: () => Omit<NodeStatus, 'invoker' | 'version' | 'at'>,
  ) {}

  /** Whether the row has expired, because the cluster's state was out of reach for the row's time to live. */
  get isOutOfDate(): boolean {
    return this.parts.clock.monotonicMs() - this.writtenMs >= gpuRowTtlMs;
  }

  /** Writes the row within `soonMs`, after a change. */
  writeSoon(): void {
    if (this.closed || this.timer !== undefined) return;
    this.timer = this.parts.clock.setBackgroundTimer(soonMs, () => {
      this.timer = undefined;
      void this.write();
    });
  }

  /** Never rejects. */ async write(): Promise<void> {
    if (this.closed) return;
    const { invoker, state, clock, logger } = this.parts;
    const row: NodeStatus = { invoker, version: ++this.version, at: clock.now(), ...this.read() };
    const beganMs = clock.monotonicMs();
    try {
      await state.setRow(gpuTable, invoker, writeRow(row), gpuRowTtlMs);
      this.writtenMs = beganMs;
    } catch (error) {
      logger.error({ error: String(error) }, 'the GPU table could not be written');
    }
  }

  /** Removes the row and stops further writes. */
  async close(): Promise<void> {
    this.closed = true;
    this.timer?.cancel();
    await this.parts.state.deleteRow(gpuTable, this.parts.invoker);
  }
}

/**
 * Counts each namespace's use of this node's GPUs (share × time) and adds it to the cluster's counters. Samples are not
 * charged.
 */
export class Spending {
  private readonly counters: WindowCounters;
  /** By busy container, monotonic ms up to which its use is counted. */
  private readonly countedMs = new Map<string, number>();
  /** By namespace, use in ms of a whole GPU that the cluster's counters lack. */
  private readonly due = new Map<string, number>();

  constructor(
    state: ClusterState,
    private readonly clock: Pick<Clock, 'monotonicMs'>,
    private readonly counts: Pick<UseCounts, 'add'>,
  ) {
    this.counters = gpuSpendingCounters(state);
  }

  /** Called at the start of each run in a container. */
  began(container: string): void {
    if (!this.countedMs.has(container)) this.countedMs.set(container, this.clock.monotonicMs());
  }

  /** Counts a container's use until now. */
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
    this.counts.add(lastUser.namespace, lastUser.action, spentMs);
  }

  /** Counts the rest of an ended container's use, also if the container ended during a run. */
  left(one: GpuContainer): void {
    this.count(one);
    this.countedMs.delete(one.container.id);
  }

  /** Adds the use to the cluster's counters; use that cannot be added is kept for the next call. */
  async tell(containers: readonly GpuContainer[]): Promise<void> {
    const living = new Set(containers.map(({ container }) => container.id));
    for (const id of this.countedMs.keys()) if (!living.has(id)) this.countedMs.delete(id);
    for (const one of containers) this.count(one);
    for (const [namespace, ms] of [...this.due]) {
      this.due.delete(namespace);
      try {
        await this.counters.add(namespace, Math.round(ms));
      } catch {
        this.due.set(namespace, ms + (this.due.get(namespace) ?? 0)); // The cluster's state is out of reach, which its client logs.
      }
    }
  }
}

/** Dependencies of EndedWorkloads. */
interface EndedWorkloadsParts {
  invoker: string;
  state: ClusterState;
  processes: HostProcesses;
  attestation: Pick<WorkloadAttestation, 'isAttested'>;
  clock: Clock;
  logger: Logger;
}

/** Looks at the devices per check of the workloads. */
const every = 5;
/**
 * Time after which a registration without a process counts as ended, ms; `wsk gpu workload run` adds the process at once.
 */
const untoldForMs = 60_000;
/**
 * Time without an attested process after which a namespace's registration expires, ms: a training may load its data for
 * minutes before it uses the device.
 */
const unattestedForMs = 600_000;

/**
 * Finds workloads of this node whose process has ended without deregistration: those that `wsk gpu workload run` started, as
 * when the command was killed, and those that were registered with a process which this agent has seen. Finds those of
 * namespaces, too, that have had no attested process for ten minutes. Marks them as ended in the table of workloads; the
 * keeper of the registrations removes them then.
 */
export class EndedWorkloads {
  private looks = 0;
  /** By registered workload, the process that was seen and its start. */
  private seen = new Map<string, { pid: number; start: number }>();
  /** By workload of a namespace, when it was attested last, or else seen first, monotonic ms. */
  private attestedMs = new Map<string, number>();

  constructor(private readonly parts: EndedWorkloadsParts) {}

  /** Called at every look at the devices. Never rejects. */
  async look(): Promise<void> {
    if (++this.looks % every !== 0) return;
    const { state, invoker, logger } = this.parts;
    try {
      const rows = await state.rows(workloadTable);
      this.seen = new Map([...this.seen].filter(([id]) => rows.has(id)));
      this.attestedMs = new Map([...this.attestedMs].filter(([id]) => rows.has(id)));
      for (const [id, row] of rows) {
        const workload = row as unknown as Workload;
        if (workload.invoker !== invoker) continue;
        const hasEnded = workload.origin === 'started' ? this.hasEnded(workload) : this.hasVanished(workload);
        if (!(await hasEnded) && !(await this.hasExpired(workload))) continue;
        // The mark is written again at each check until the registration is removed, but logged once.
        if (workload.ended !== true) {
          logger.info(
            { workload: id, name: workload.name, pid: workload.pid },
            'a workload has ended without deregistration, or has no attested process',
          );
        }
        await state.setRow(workloadTable, id, { ...workload, ended: true } as unknown as JsonValue);
      }
    } catch (error) {
      logger.error({ error: String(error) }, 'the table of workloads cannot be read or written');
    }
  }

  private async hasExpired(workload: Workload): Promise<boolean> {
    if (workload.guard?.byOperator === true) return false;
    const nowMs = this.parts.clock.monotonicMs();
    const isAttested = await this.parts.attestation.isAttested(workload);
    const lastMs = isAttested ? nowMs : (this.attestedMs.get(workload.id) ?? nowMs);
    this.attestedMs.set(workload.id, lastMs);
    return nowMs - lastMs > unattestedForMs;
  }

  /** A process that was never seen may be one of another PID namespace. */
  private async hasVanished({ id, pid }: Workload): Promise<boolean> {
    if (pid === undefined) return false;
    const start = await this.parts.processes.startOf(pid);
    const seen = this.seen.get(id);
    if (seen?.pid === pid) return start !== seen.start;
    if (start !== undefined) this.seen.set(id, { pid, start });
    return false;
  }

  private async hasEnded({ pid, processStart, since }: Workload): Promise<boolean> {
    const { processes, clock } = this.parts;
    if (pid === undefined) return clock.now() - since > untoldForMs;
    const start = await processes.startOf(pid);
    // Another process may have the id by now.
    return start === undefined || (processStart !== undefined && start !== processStart);
  }
}
