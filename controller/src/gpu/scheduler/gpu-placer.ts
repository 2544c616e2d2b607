import type { MessageBus, Receipt } from '@gpuwhisk/common/bus/message-bus';
import type { GpuNeed, NodeStatus, Placement } from '@gpuwhisk/common/gpu';
import type { DecisionRecord } from '@gpuwhisk/common/gpu-decisions';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Tracer } from '@gpuwhisk/common/tracing';
import { endsInTime } from '@gpuwhisk/gpu/stages/place/fact-filters';
import { spanOf } from '@gpuwhisk/gpu/algorithms/dilu/fragments';
import { bindTo, placeLeastLoaded } from '@gpuwhisk/gpu/stages/place/least-loaded';
import type { PlacementChoice, PlacementRequest } from '@gpuwhisk/gpu/ledger/account';
import { Ledger } from '@gpuwhisk/gpu/ledger/ledger';
import type { PlaceAccount } from '@gpuwhisk/gpu/ledger/ledger';
import type { Occupant, Reservation } from '@gpuwhisk/gpu/ledger/occupancy';
import type { OpenLedger } from '@gpuwhisk/gpu/ledger/used-places';
import type { PerformanceData } from '../learning/performance-data.js';
import type { GpuTable } from '../state/gpu-table.js';
import type { LeaseKeeper } from '../../cluster/lease.js';
import { completionWaitMs } from '../../entitlement/in-flight.js';
import { traceDecision } from './decision-trace.js';
import type { WaitingActivation } from './gpu-queue.js';

/** Dependencies of GpuPlacer. */
export interface GpuPlacerDependencies {
  bus: MessageBus;
  clock: Clock;
  table: GpuTable;
  /** The lease of the leader, the only scheduler of the cluster that decides. */
  lease: Pick<LeaseKeeper, 'epoch'> & Partial<Pick<LeaseKeeper, 'onChange'>>;
  /** Performance data of functions and GPUs, and the decisions made. */
  performanceData: PerformanceData;
  /** Absent: decisions are in no trace. */
  tracer?: Tracer;
}

/** The decision with which an activation is sent to a GPU. */
export interface Sent {
  need: GpuNeed;
  request: PlacementRequest;
  choice: PlacementChoice;
  /** Reason of the decision, for operators. */
  reason: string;
  /** Why it was put nowhere before; absent: it did not wait. */
  waitedFor?: string;
}

/** What a decision record tells of the wait: activations ahead when it came, and why it was put nowhere before. */
type Wait = Pick<DecisionRecord, 'ahead' | 'waitedFor'>;

/** What of a waiting activation decides where it may be put. */
type Waiting = Pick<WaitingActivation, 'message' | 'request' | 'refusedAtMs'>;

/** Keeps the ledger of all places, and sends activations to the places that a policy chooses. */
export class GpuPlacer {
  private readonly ledger = new Ledger();
  /** Invokers of the nodes that will be taken away. */
  private readonly leaving = new Set<string>();

  /** `policyName` gives the name of the policy in force, for decision records. */
  constructor(
    private readonly dependencies: GpuPlacerDependencies,
    private readonly policyName: () => string,
  ) {
    const { table } = dependencies;
    for (const node of table.nodes()) this.settle(node);
    table.onGone((invoker) => {
      this.leaving.delete(invoker);
      this.ledger.silent(invoker);
    });
  }

  /** Whether this controller is the leader. */
  get isLeader(): boolean {
    return this.dependencies.lease.epoch !== undefined;
  }

  /** Number of activations with a reservation whose end is not known here. */
  get reserved(): number {
    return this.unended().length;
  }

  /** Reservations of activations whose end is not known here, oldest first. */
  unended(): Reservation[] {
    return this.ledger.unended();
  }

  /** The ledger for the leader. Throws an Error on any other controller. */
  open(): OpenLedger {
    const { epoch } = this.dependencies.lease;
    if (epoch === undefined) throw new Error('another controller decides');
    return { ledger: this.ledger, isOpen: this.isOpen(new Map()), epoch };
  }

  /**
   * A place for a new instance, even if an instance is idle: one of `ids`, or the place with the least allocated. More `ids`
   * than the request needs are devices that it spans.
   */
  placeNew(request: PlacementRequest, ids: readonly string[] | undefined): PlacementChoice {
    const { ledger, isOpen, epoch } = this.open();
    const allowed = ids && new Set(ids);
    const limits = { kept: new Set<string>(), isOpen, isNew: true, ...(allowed && { allowed }) };
    const stamp = { epoch, at: this.dependencies.clock.now() };
    const isSpread = ids !== undefined && ids.length > request.gpus && (request.spans ?? 1) >= ids.length;
    return isSpread ? spanOf(ledger, request, limits, stamp) : placeLeastLoaded(ledger, request, limits, stamp);
  }

  /** The places that a policy chose, if they can still take the request; `refusedAtMs` as in WaitingActivation. */
  bind(request: PlacementRequest, ids: readonly string[], refusedAtMs: ReadonlyMap<string, number>): PlacementChoice {
    const { ledger, epoch } = this.open();
    const stamp = { epoch, at: this.dependencies.clock.now() };
    return bindTo(ledger, request, { ids, isOpen: this.isOpen(refusedAtMs) }, stamp);
  }

  /** Sends an activation to its place. Throws TopicFullError, or another Error if the log has failed. */
  send(message: ActivationMessage, { need, request, choice, reason, waitedFor }: Sent): Receipt {
    const { placement, reuses } = choice;
    if (placement === undefined) throw new Error('the choice has no placement');
    const placed: ActivationMessage = { ...message, gpu: placement };
    // Reserved before the send, as an embedded bus may deliver, run and acknowledge within it.
    this.hold(message.activationId, request, need, placement, reuses);
    try {
      const receipt = this.dependencies.bus.send(placement.invoker, placed as unknown as JsonObject);
      this.note(message, choice, `placed: ${reason}`, waitedFor === undefined ? {} : { waitedFor });
      return receipt;
    } catch (error) {
      this.ledger.release(message.activationId);
      throw error;
    }
  }

  /** Repeats a send. Throws as `send` does. */
  sendAgain(message: ActivationMessage, placement: Placement): Receipt {
    const placed: ActivationMessage = { ...message, gpu: placement };
    return this.dependencies.bus.send(placement.invoker, placed as unknown as JsonObject);
  }

  /** Keeps a decision record for `wsk gpu explain`. */
  note(message: ActivationMessage, { placement, rejected }: PlacementChoice, reason: string, wait: Wait = {}): void {
    const { clock, performanceData, tracer } = this.dependencies;
    const { activationId, action, user, gpuNeed } = message;
    const at = clock.now();
    const name = `/${action.path}/${action.name}`;
    const namespace = user.namespace.name;
    const decision: DecisionRecord = {
      at,
      activationId,
      action: name,
      namespace,
      policy: this.policyName(),
      ...(placement && { placement }),
      reason,
      rejected,
      ...(gpuNeed?.sloMs !== undefined && { sloMs: gpuNeed.sloMs }),
      ...wait,
    };
    performanceData.decisions.add(decision);
    if (tracer !== undefined) traceDecision(tracer, message, decision);
  }

  /** The placement of an activation whose end is not known here. */
  placementOf(activationId: string): Placement | undefined {
    return this.ledger.placementOf(activationId);
  }

  /** Ends the reservation of an activation whose run is over. */
  ended(activationId: string): void {
    this.ledger.end(activationId);
  }

  /** Ends the reservation of an activation that an agent has returned. */
  returned(activationId: string): void {
    this.ledger.release(activationId);
  }

  /** Compares reservations with a node's row. Returns the activations that should have ended and have not. */
  settle(node: NodeStatus): string[] {
    if (node.leavesAt === undefined) this.leaving.delete(node.invoker);
    else this.leaving.add(node.invoker);
    return this.ledger.heard(node, this.dependencies.clock.monotonicMs());
  }

  /** The accounts of places on live nodes. A node that refused (by node, monotonic ms) counts only with a newer row. */
  accounts(refusedAtMs: ReadonlyMap<string, number> = new Map()): PlaceAccount[] {
    const isOpen = this.isOpen(refusedAtMs);
    return this.ledger.accounts().filter(({ place }) => isOpen(place.node.invoker));
  }

  /**
   * Ids of the places that a waiting activation may be put on: those of agents that have not refused it, for a training job
   * of the node with its checkpoints, and on a node that leaves those with an instance in which it ends in time. Undefined if
   * that is no restriction.
   */
  allowedFor({ message, request, refusedAtMs }: Waiting): Set<string> | undefined {
    const invoker = message.training?.invoker;
    if (refusedAtMs.size === 0 && invoker === undefined && this.leaving.size === 0) return undefined;
    const accounts = this.accounts(refusedAtMs).filter(
      ({ place, health, occupants }) =>
        (invoker === undefined || place.node.invoker === invoker) &&
        (health?.state !== 'leaving' || (endsInTime(health, request) && hasInstance(occupants, request))),
    );
    return new Set(accounts.map(({ id }) => id));
  }

  /** The rows of live nodes. */
  rows(): NodeStatus[] {
    const isOpen = this.isOpen(new Map());
    return this.ledger.rows().filter(({ invoker }) => isOpen(invoker));
  }

  /** The accounts of the known places among these ids. */
  accountsOf(ids: readonly string[]): PlaceAccount[] {
    return ids.map((id) => this.ledger.account(id)).filter((account) => account !== undefined);
  }

  /** The reservations on a place, by its id. */
  heldOn(id: string): Iterable<Reservation> {
    return this.ledger.heldOn(id);
  }

  private isOpen(refusedAtMs: ReadonlyMap<string, number>): (invoker: string) => boolean {
    const silentMs = this.dependencies.table.silentSinceMs();
    return (invoker) => {
      const seenMs = this.ledger.seenMs(invoker);
      return seenMs >= silentMs && seenMs >= (refusedAtMs.get(invoker) ?? -Infinity);
    };
  }

  private hold(
    activationId: string,
    { action, namespace, subject, isolation }: PlacementRequest,
    { timeoutMs }: GpuNeed,
    placement: Placement,
    reuses: string | undefined,
  ): void {
    const reservation: Reservation = {
      activationId,
      action,
      namespace,
      isolation,
      placement,
      ...(subject !== undefined && { subject }),
      ...(reuses !== undefined && { reuses }),
      ended: false,
    };
    this.ledger.hold(reservation, this.dependencies.clock.monotonicMs() + completionWaitMs(timeoutMs));
  }
}

/** Whether an instance of a request's function is there that takes a run, or gathers its next batch. */
function hasInstance(occupants: readonly Occupant[], { action, namespace, batch }: PlacementRequest): boolean {
  return occupants.some(
    (one) => one.action === action && one.namespace === namespace && (one.users === 0 || batch > 1),
  );
}
