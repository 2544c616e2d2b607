import { keepNewest } from '@gpuwhisk/common/collections';
import { gpuRowTtlMs, gpuTable, workloadTable } from '@gpuwhisk/common/gpu';
import { gpuSpendingCounters } from '@gpuwhisk/common/gpu-nodes';
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

/** The use of a container since it has been busy, ms of a whole GPU. */
interface BusyUse {
  namespace: string;
  action: string;
  spentMs: number;
  /** Part of it that the costs have yet to count. */
  heldMs: number;
}

/** Use of a busy container that the costs count before it is idle, ms of a whole GPU. */
const maxHeldMs = 60_000;
/** Functions with a credit, at most. */
const maxCredits = 1000;

/**
 * Counts each namespace's use of this node's GPUs (share × time) and adds it to the cluster's counters. Samples and runs that
 * are forgiven are not charged.
 */
export class Spending {
  private readonly counters: WindowCounters;
  /** By busy container, monotonic ms up to which its use is counted. */
  private readonly countedMs = new Map<string, number>();
  /** By namespace, use in ms of a whole GPU that the cluster's counters lack. */
  private readonly due = new Map<string, number>();
  private readonly busy = new Map<string, BusyUse>();
  /** Containers that are ended, with a run that is charged to no namespace. */
  private readonly forgiven = new Set<string>();
  /** By namespace and action, use that the costs have counted and are not to: their further use makes it up, ms. */
  private readonly credits = new Map<string, number>();

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
    if (this.forgiven.has(container.id)) return;
    const { namespace, action } = lastUser;
    const spentMs = (nowMs - sinceMs) * share.smLimit * grant.devices.length;
    this.owe(namespace, spentMs);
    const use = this.busy.get(container.id) ?? { namespace, action, spentMs: 0, heldMs: 0 };
    use.spentMs += spentMs;
    use.heldMs += spentMs;
    this.busy.set(container.id, use);
    if (users.size === 0 || use.heldMs >= maxHeldMs) this.settle(use);
    if (users.size === 0) this.busy.delete(container.id);
  }

  /** Takes back what was counted of the runs under way in a container, which is about to be ended: others ended them. */
  forgive(container: string): void {
    if (!this.countedMs.has(container)) return;
    this.forgiven.add(container);
    const use = this.busy.get(container);
    this.busy.delete(container);
    if (use === undefined) return;
    this.owe(use.namespace, -use.spentMs);
    const key = creditKey(use);
    const credit = (this.credits.get(key) ?? 0) + use.spentMs - use.heldMs;
    if (credit > 0) keepNewest(this.credits, key, credit, maxCredits);
  }

  /** Counts the rest of an ended container's use, also if the container ended during a run. */
  left(one: GpuContainer): void {
    this.count(one);
    const use = this.busy.get(one.container.id);
    if (use !== undefined) this.settle(use);
    this.busy.delete(one.container.id);
    this.forgiven.delete(one.container.id);
    this.countedMs.delete(one.container.id);
  }

  /** Adds all that is held to the costs, as before the last report. */
  settleAll(): void {
    for (const use of this.busy.values()) this.settle(use);
  }

  /** Adds what is held of a use to the costs, less what its function has as a credit. */
  private settle(use: BusyUse): void {
    const key = creditKey(use);
    const credit = this.credits.get(key) ?? 0;
    const free = Math.min(credit, use.heldMs);
    if (free >= credit) this.credits.delete(key);
    else this.credits.set(key, credit - free);
    this.counts.add(use.namespace, use.action, use.heldMs - free);
    use.heldMs = 0;
  }

  private owe(namespace: string, ms: number): void {
    this.due.set(namespace, (this.due.get(namespace) ?? 0) + ms);
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

const creditKey = ({ namespace, action }: BusyUse): string => `${namespace}\n${action}`;

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
