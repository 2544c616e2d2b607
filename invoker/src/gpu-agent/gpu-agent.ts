import { gpuNoticeTable } from '@gpuwhisk/common/gpu-nodes';
import type { NodeNotice } from '@gpuwhisk/common/gpu-nodes';
import { gpuDeciderTable, gpuDesiredTable, cordonTable, workloadTable } from '@gpuwhisk/common/gpu';
import type { DeviceStatus, CordonRequest, InHand, NodeStatus, Placement, Slice } from '@gpuwhisk/common/gpu';
import type { JsonValue } from '@gpuwhisk/common/json';
import type { Logger } from '@gpuwhisk/common/logging';
import type { ClusterState } from '@gpuwhisk/common/state/cluster-state';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';
import type { Container, GpuGrant } from '../containers/container-factory.js';
import type { GpuAccess } from '../containers/runtime-launch.js';
import { LaunchChecks } from './container-checks.js';
import { ContainerClients, ShareUpdates, ShareCeilings } from './container-shares.js';
import { Departure } from './departure.js';
import { DesiredState } from './desired-state.js';
import { clientEnvs, DeviceAccess } from './device-access.js';
import { DeviceUse } from './device-use.js';
import type { ShownDevices } from './device-metrics.js';
import { FaultHistory, uncordoned } from './device-faults.js';
import type { GpuDriver } from './drivers/gpu-driver.js';
import { ForeignWork } from './foreign-work.js';
import { EndedWorkloads, NodeRow, Spending } from './cluster-reports.js';
import type { ShareEnforcer } from './enforcers/share-enforcer.js';
import { Geometry } from './geometry.js';
import { GpuContainers } from './gpu-containers.js';
import type { GpuRuns, GpuUser } from './gpu-runs.js';
import { Healer } from './healer.js';
import type { Ending } from './healer.js';
import type { HostProcesses } from './host/host-processes.js';
import { DeviceLedger, Inventory } from './inventory.js';
import { UseCounts } from './node-use.js';
import { placementProblem, occupancyOf } from './placement-check.js';
import { ContextSizes, Sampler } from './sampler.js';
import { TimeSlices } from './time-slices.js';
import { WorkloadAttestation } from './workload-attestation.js';

/** The pool, which owns the containers, as the agent uses it. */
export interface ContainerOwner {
  /** Destroys a container, idle or busy. */
  end(container: Container): void;
  /** Containers that wait for an action. */
  unbound(): ReadonlySet<string>;
  /** Activations with a GPU that the invoker has taken and not yet recorded. */
  inHand(): InHand[];
}

/** Dependencies and settings of a GpuAgent. */
export interface GpuAgentOptions {
  /** The topic of its invoker, `invoker0`: its key in the GPU table. */
  invoker: string;
  driver: GpuDriver;
  enforcer: ShareEnforcer;
  state: ClusterState;
  clock: Clock;
  logger: Logger;
  processes: HostProcesses;
  /** Access to a device without a share: its files, and the driver's libraries. */
  access(device: string, slice?: Slice): GpuAccess;
  /** Time between two looks at the devices, ms; default 1000. */
  sampleMs?: number;
  /** Measured sizes of contexts, shared with others; default: the agent's own. */
  contexts?: ContextSizes;
  /** The operator's description of the machine, if there is one. */
  node?: NodeDescription;
  /** By numeric user id, the namespace whose workloads the processes of this user may be. */
  workloadUsers?: Readonly<Record<string, string>>;
}

/** Fields of a node's row about its machine. */
export type NodeDescription = Pick<NodeStatus, 'labels' | 'market' | 'pricePerHour'>;

/** The agent of one node's GPUs: observes devices, checks placements, and controls the containers with a GPU. */
export class GpuAgent implements GpuRuns {
  readonly ledger = new DeviceLedger();
  readonly gpuContainers = new GpuContainers();
  private readonly use = new DeviceUse();
  private readonly inventory: Inventory;
  private readonly faultHistory = new FaultHistory();
  private readonly healer: Healer;
  private readonly sampler: Sampler;
  private readonly attestation: WorkloadAttestation;
  private readonly workloads: EndedWorkloads;
  private readonly row: NodeRow;
  private readonly shareUpdates: ShareUpdates;
  private readonly geometry: Geometry;
  private readonly desired: DesiredState;
  private readonly ceilings: ShareCeilings;
  private readonly launches: LaunchChecks;
  private readonly spending: Spending;
  private readonly useCounts: UseCounts;
  private readonly departure: Departure;
  private readonly foreignWork: ForeignWork;
  private readonly timeSlices: TimeSlices;
  private readonly accesses: DeviceAccess;
  private statuses: DeviceStatus[] = [];
  private clientEnv: Record<string, Record<string, string>> = {};
  private epoch = 0;
  private closed = false;
  private readonly subscriptions: { close(): Promise<void> }[] = [];
  private timer: Timer | undefined;
  private looking: Promise<void> = Promise.resolve();
  private owner: ContainerOwner = { end: () => undefined, unbound: () => new Set(), inHand: () => [] };

  private readonly contexts: ContextSizes;

  constructor(private readonly options: GpuAgentOptions) {
    this.contexts = options.contexts ?? new ContextSizes(options.driver.version.driver);
    const { driver, enforcer, clock, logger, processes, access } = options;
    const { ledger, gpuContainers, faultHistory, contexts } = this;
    this.inventory = new Inventory(driver, enforcer, ledger, logger);
    const { inventory } = this;
    const end = (container: Container): void => this.owner.end(container);
    const forgive = (container: string): void => this.spending.forgive(container);
    this.healer = new Healer({ inventory, gpuContainers, enforcer, faultHistory, clock, logger, end, forgive });
    const { healer } = this;
    const refresh = (): Promise<void> => this.refresh();
    const statuses = (): readonly DeviceStatus[] => this.statuses;
    const changed = (): void => this.row.writeSoon();
    this.geometry = new Geometry({ ...options, inventory, gpuContainers, healer, statuses, refresh, changed });
    this.attestation = new WorkloadAttestation(options);
    this.workloads = new EndedWorkloads({ ...options, attestation: this.attestation });
    const clients = new ContainerClients(enforcer, processes);
    this.launches = new LaunchChecks({ enforcer, gpuContainers, clients, healer, clock, logger });
    this.shareUpdates = new ShareUpdates({ enforcer, gpuContainers, clients, logger });
    const timeSlices = (this.timeSlices = new TimeSlices({
      ...this.options,
      inventory,
      gpuContainers,
      healer,
      refresh,
    }));
    const { geometry } = this;
    this.desired = new DesiredState({ gpuContainers, enforcer, geometry, timeSlices, healer, clock, end });
    const ceilings = (this.ceilings = new ShareCeilings({ ...options, inventory, gpuContainers }));
    this.row = new NodeRow(options, () => this.rowNow());
    this.useCounts = new UseCounts({ ...options, node: options.node ?? {} });
    this.spending = new Spending(options.state, clock, this.useCounts);
    this.departure = new Departure({ inventory, gpuContainers, healer, clock, logger });
    this.foreignWork = new ForeignWork({ enforcer, inventory, gpuContainers, healer, processes, logger, refresh });
    this.accesses = new DeviceAccess({ inventory, gpuContainers, enforcer, healer, ceilings, clock, access });
    const unbound = (): ReadonlySet<string> => this.owner.unbound();
    this.sampler = new Sampler({
      driver,
      enforcer,
      inventory,
      gpuContainers,
      ledger,
      healer,
      contexts,
      processes,
      clock,
      logger,
      unbound,
    });
  }

  /** Prepares the devices and begins to sample them. Rejects with GpuDriverError. */
  async start(): Promise<void> {
    await this.readDevices();
    const { driver, state } = this.options;
    const events = await driver.watch((event) => {
      if (event.type === 'mig-changed') void this.refresh();
      else this.healer.note(event);
      this.row.writeSoon();
    });
    const requests = await state.watch(cordonTable, (device, wish) => this.applyOperatorRequest(device, wish));
    const decider = await state.watch(gpuDeciderTable, (_, epoch) => this.noteEpoch(epoch));
    // A new workload connects soon after its registration and needs a ceiling before.
    const workloads = await state.watch(workloadTable, () => void this.ceilings.look());
    const { invoker } = this.options;
    const desired = await state.watch(gpuDesiredTable, (key, row) => {
      if (key === invoker) this.setDesired(row);
    });
    const notices = await state.watch(gpuNoticeTable, (key, row) => {
      if (key === invoker) this.setNotice(row);
    });
    this.subscriptions.push(events, requests, decider, workloads, desired, notices);
    for (const epoch of (await state.rows(gpuDeciderTable)).values()) this.noteEpoch(epoch);
    this.setDesired((await state.rows(gpuDesiredTable)).get(invoker));
    await this.takeUpNotice();
    // Stored cordons and drains still apply. Stored uncordons do not: an earlier process has applied them.
    for (const [device, wish] of await state.rows(cordonTable)) {
      if ((wish as unknown as CordonRequest).wish !== 'uncordon') this.applyOperatorRequest(device, wish);
    }
    await this.look();
    this.scheduleLook();
  }

  /** Sets the owner of the containers. */
  attach(owner: ContainerOwner): void {
    this.owner = owner;
  }

  /** Admits an activation until its end, or returns the reason of a refusal, without any change. */
  admit(placement: Placement, user: GpuUser): string | undefined {
    const { inventory, gpuContainers, ledger, options } = this;
    const joins = placement.joins === true && gpuContainers.canJoin(user, placement);
    const problem =
      this.faultHistory.problem(user.action, options.clock.now()) ??
      placementProblem(placement, {
        epoch: this.epoch,
        isCutOff: this.row.isOutOfDate,
        devices: inventory.devices,
        healthOf: (device) => inventory.healthOf(device),
        capacityMiB: (place) => ledger.capacityMiB(place) ?? 0,
        freeMiB: (place) => (joins ? Infinity : (ledger.capacityMiB(place) ?? 0) - gpuContainers.busyMiB(place)),
        isBusy: (container) => (gpuContainers.get(container)?.users.size ?? 0) > 0,
        occupancyOn: (device) => occupancyOf(gpuContainers, user, placement, device),
        workloadsOn: (device) => workloadsOf(this.statuses, device),
        user,
      });
    if (problem !== undefined) return problem;
    this.epoch = Math.max(this.epoch, placement.epoch);
    for (const id of placement.reclaim ?? []) {
      const one = gpuContainers.get(id);
      if (one === undefined || one.ending) continue;
      one.ending = true;
      this.owner.end(one.container);
    }
    if (!joins) gpuContainers.admit(user, placement);
    return undefined;
  }

  began(user: GpuUser, container: string): void {
    this.spending.began(container);
    this.gpuContainers.began(user, container);
    const grant = this.gpuContainers.get(container)?.grant;
    if (grant !== undefined) this.use.began(user.activationId, container, grant, this.options.clock.monotonicMs());
    this.desired.reconcile();
    void this.shareUpdates.look();
    this.row.writeSoon();
  }

  loaded(container: string, ms: number): void {
    this.gpuContainers.loaded(container, ms);
    this.row.writeSoon();
  }

  onRetire(container: string, listener: () => void): void {
    const one = this.gpuContainers.get(container);
    if (one !== undefined) one.onRetire = listener;
  }

  besideMs(activationId: string): number | undefined {
    const nowMs = this.options.clock.monotonicMs();
    const use = this.use.of(activationId, nowMs);
    if (use === undefined) return undefined;
    // Work that is not the platform's is there all the time, as far as looks tell.
    return use.places.some((place) => this.hasWorkloads(place)) ? nowMs - use.beganMs : use.besideMs;
  }

  ended(user: GpuUser): void {
    this.use.ended(user.activationId, this.options.clock.monotonicMs());
    const one = this.gpuContainers.ended(user, this.options.clock.now());
    if (one?.users.size === 0) this.spending.count(one);
    this.desired.reconcile();
    this.departure.reconcile();
    this.geometry.reconcile();
    this.row.writeSoon();
  }

  /** The access of a container with this grant. Rejects with ProvisioningError. */
  accessFor(grant: GpuGrant): Promise<GpuAccess> {
    return this.accesses.accessFor(grant);
  }

  /** Called if a container that had access to its devices could not start. */
  failed(grant: GpuGrant): void {
    this.ceilings.isOver(grant);
  }

  /** Called when a container with a grant has started, after `startMs`. */
  joined(container: Container, grant: GpuGrant, startMs: number): void {
    this.ceilings.isOver(grant);
    this.gpuContainers.add(container, grant, startMs, (one) => {
      this.spending.left(one);
      this.geometry.reconcile();
      this.row.writeSoon();
    });
    this.row.writeSoon();
  }

  endingOf(container: string): Ending | undefined {
    return this.healer.endingOf(container);
  }

  /** Whether a function's fault has ended all clients of one of the grant's devices since then (monotonic ms). */
  faultSince({ devices }: GpuGrant, sinceMs: number): boolean {
    return devices.some((device) => this.healer.faultSince(device, sinceMs));
  }

  isInnocent(container: string): Promise<boolean> {
    return this.healer.isInnocent(container);
  }

  /** Called after a restart of the driver: ends its former clients and prepares the devices again. */
  async driverRestarted(): Promise<void> {
    for (const one of this.gpuContainers.all()) {
      this.healer.end(one, { text: "The GPU's driver was started again while the action ran.", byAction: false });
    }
    await this.refresh();
  }

  /** Stops sampling, reports the remaining use, and removes the node's row. The caller closes driver and enforcer. */
  async close(): Promise<void> {
    this.closed = true;
    this.timer?.cancel();
    this.departure.close();
    for (const subscription of this.subscriptions) await subscription.close();
    await this.looking;
    await this.timeSlices.settled();
    await this.spending.tell(this.gpuContainers.all());
    this.spending.settleAll();
    await this.useCounts.tell(this.inventory.devices.length);
    await this.row.close();
  }

  /** Whether processes that are not the platform's were on a device or slice at the last look. */
  private hasWorkloads(place: string): boolean {
    return this.statuses.some(({ uuid, processes }) =>
      processes.some(({ container, slice }) => container === undefined && (slice ?? uuid) === place),
    );
  }

  /** Notes the epoch of the deciding controller. Decisions of earlier epochs are void; the node's row reports the epoch. */
  private noteEpoch(epoch: JsonValue | undefined): void {
    if (typeof epoch !== 'number' || epoch <= this.epoch) return;
    this.epoch = epoch;
    this.row.writeSoon();
  }

  /** Applies the node's desired state, as the deciding controller has written it. */
  private setDesired(row: JsonValue | undefined): void {
    this.desired.set(row, this.epoch);
    void this.shareUpdates.look();
    this.row.writeSoon();
  }

  private setNotice(row: JsonValue | undefined): void {
    this.departure.set(row as unknown as NodeNotice | undefined);
    this.row.writeSoon();
  }

  /** Follows a notice of before the start, unless its time has passed: the node was not taken away. */
  private async takeUpNotice(): Promise<void> {
    const { state, invoker, clock } = this.options;
    const row = (await state.rows(gpuNoticeTable)).get(invoker);
    const { leavesAt = Infinity } = (row ?? {}) as Partial<NodeNotice>;
    if (leavesAt <= clock.now()) await state.deleteRow(gpuNoticeTable, invoker);
    else if (row !== undefined) this.setNotice(row);
  }

  /** Applies an operator's cordon, drain or uncordon of a device. Devices of other nodes are ignored. */
  private applyOperatorRequest(uuid: string, row: JsonValue | undefined): void {
    const { inventory } = this;
    if (row === undefined || inventory.find(uuid) === undefined) return;
    const { wish } = row as unknown as CordonRequest;
    const record = inventory.record(uuid);
    inventory.setRecord(uuid, wish === 'uncordon' ? uncordoned(record) : { ...record, operatorRequest: wish });
    this.healer.drain(uuid);
    this.row.writeSoon();
  }

  private async readDevices(): Promise<void> {
    const { enforcer, access } = this.options;
    await this.inventory.refresh();
    this.contexts.setDevices(this.inventory.devices);
    this.clientEnv = await clientEnvs(this.inventory.devices, enforcer, access, this.clientEnv);
  }

  private async refresh(): Promise<void> {
    try {
      await this.readDevices();
    } catch (error) {
      this.options.logger.error({ error: String(error) }, 'the GPUs could not be listed again');
    }
    this.row.writeSoon();
  }

  /** The devices as metrics show them. */
  get shown(): ShownDevices {
    const { inventory, healer } = this;
    return {
      devices: inventory.devices,
      status: this.statuses.map((status) => ({ ...status, health: inventory.healthOf(status.uuid) })),
      residents: this.gpuContainers.rows(),
      isShared: (device) => inventory.isShared(device),
      restarts: (device) => healer.restarted.get(device) ?? 0,
    };
  }

  private scheduleLook(): void {
    const { clock, sampleMs = 1000 } = this.options;
    this.timer = clock.setBackgroundTimer(sampleMs, () => {
      if (this.closed) return;
      this.looking = this.look().finally(() => this.scheduleLook());
    });
  }

  private async look(): Promise<void> {
    this.statuses = await this.attestation.attest(await this.sampler.look());
    await this.foreignWork.look(this.statuses);
    this.timeSlices.look(this.statuses);
    await this.workloads.look();
    await this.ceilings.look();
    this.desired.reconcile();
    this.departure.reconcile();
    this.geometry.reconcile();
    await this.shareUpdates.look();
    await this.launches.look(this.statuses);
    await this.spending.tell(this.gpuContainers.all());
    await this.row.write();
    await this.useCounts.look(this.inventory.devices.length);
  }

  private rowNow(): Omit<NodeStatus, 'invoker' | 'version' | 'at'> {
    const { inventory, gpuContainers, statuses, clientEnv } = this;
    return {
      driver: this.options.driver.version.driver,
      devices: inventory.devices.map((device) => this.timeSlices.mark(device)),
      cuts: this.options.driver.cuts,
      status: statuses.map((status) => {
        const cut = this.geometry.statusOf(status.uuid);
        return { ...status, health: inventory.healthOf(status.uuid), ...(cut && { cut }) };
      }),
      residents: gpuContainers.rows(),
      epoch: this.epoch,
      ...(this.healer.faults.length > 0 && { faults: [...this.healer.faults] }),
      inHand: this.owner.inHand(),
      ...this.options.node,
      ...(this.departure.leavesAt !== undefined && { leavesAt: this.departure.leavesAt }),
      ...(this.options.enforcer.adjusts && { movesShares: true }),
      ...(Object.keys(clientEnv).length > 0 && { clientEnv }),
    };
  }
}

/** Number of processes on a device, at the last look, that are not the platform's. */
function workloadsOf(statuses: readonly DeviceStatus[], device: string): number {
  const processes = statuses.find(({ uuid }) => uuid === device)?.processes ?? [];
  return processes.filter(({ container }) => container === undefined).length;
}
