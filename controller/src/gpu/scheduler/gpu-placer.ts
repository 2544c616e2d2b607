import type { MessageBus, Receipt } from '@gpuwhisk/common/bus/message-bus';
import { gpuRowTtlMs } from '@gpuwhisk/common/gpu';
import type { DecisionRecord, GpuNeed, NodeStatus, Placement } from '@gpuwhisk/common/gpu';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { bindTo, placeLeastLoaded } from '@gpuwhisk/gpu/place/least-loaded';
import type { PlacementChoice, PlacementRequest } from '@gpuwhisk/gpu/view/account';
import { Ledger } from '@gpuwhisk/gpu/view/ledger';
import type { PlaceAccount } from '@gpuwhisk/gpu/view/ledger';
import type { Reservation } from '@gpuwhisk/gpu/view/occupancy';
import type { OpenLedger } from '@gpuwhisk/gpu/view/view';
import type { PerformanceData } from '../learning/performance-data.js';
import type { GpuTable } from '../state/gpu-table.js';
import type { LeaseKeeper } from '../../cluster/lease.js';
import { completionWaitMs } from '../../entitlement/in-flight.js';

/** Dependencies of GpuPlacer. */
export interface GpuPlacerDependencies {
  bus: MessageBus;
  clock: Clock;
  table: GpuTable;
  /** The right to decide, which one scheduler of the cluster has. */
  lease: Pick<LeaseKeeper, 'epoch'> & Partial<Pick<LeaseKeeper, 'onChange'>>;
  /** Performance data of functions and GPUs, and the decisions made. */
  performanceData: PerformanceData;
}

/** An activation on its way to a GPU. */
export interface Sent {
  need: GpuNeed;
  request: PlacementRequest;
  choice: PlacementChoice;
  /** For an operator. */
  reason: string;
}

/** Keeps the account of all places, and sends activations where a policy puts them. */
export class GpuPlacer {
  private readonly ledger = new Ledger();

  /** `policy`: the name of what decides, for the record. */
  constructor(
    private readonly dependencies: GpuPlacerDependencies,
    private readonly policy: string,
  ) {
    const { table, clock } = dependencies;
    for (const node of table.nodes()) this.ledger.heard(node, clock.monotonicMs());
    table.onGone((invoker) => this.ledger.silent(invoker));
  }

  /** Whether it may decide now. */
  get isLeader(): boolean {
    return this.dependencies.lease.epoch !== undefined;
  }

  /** Activations that something was given out to and that have not ended, as far as is known here. */
  get reserved(): number {
    return this.unended().length;
  }

  /** Reservations of activations that have not ended, as far as is known here; the oldest first. */
  unended(): Reservation[] {
    return this.ledger.unended();
  }

  /** The last decisions, the last one first. */
  decisions(): DecisionRecord[] {
    return this.dependencies.performanceData.decisions.latest();
  }

  /** The places, for who decides now. Throws Error where another controller does. */
  open(): OpenLedger {
    const { epoch } = this.dependencies.lease;
    if (epoch === undefined) throw new Error('another controller decides');
    return { ledger: this.ledger, isOpen: this.isOpen(new Map()), epoch };
  }

  /** A place for a new instance, whatever idles there: on `ids`, or where the least is given away. */
  placeNew(request: PlacementRequest, ids: readonly string[] | undefined): PlacementChoice {
    const { ledger, isOpen, epoch } = this.open();
    const allowed = ids && new Set(ids);
    const limits = { kept: new Set<string>(), isOpen, isNew: true, ...(allowed && { allowed }) };
    return placeLeastLoaded(ledger, request, limits, { epoch, at: this.dependencies.clock.now() });
  }

  /** The places that a policy chose, if they still can take the request; `refusedAtMs` as in WaitingActivation. */
  bind(request: PlacementRequest, ids: readonly string[], refusedAtMs: ReadonlyMap<string, number>): PlacementChoice {
    const { ledger, epoch } = this.open();
    return bindTo(ledger, request, ids, this.isOpen(refusedAtMs), { epoch, at: this.dependencies.clock.now() });
  }

  /** Sends an activation where it was placed. Throws TopicFullError, or another Error if the log has failed. */
  send(message: ActivationMessage, { need, request, choice, reason }: Sent): Receipt {
    const { placement, reuses } = choice;
    if (placement === undefined) throw new Error('nothing was chosen');
    const placed: ActivationMessage = { ...message, gpu: placement };
    // Before it is sent: an embedded bus may deliver, run and acknowledge at once.
    this.hold(message.activationId, request, need, placement, reuses);
    try {
      const receipt = this.dependencies.bus.send(placement.invoker, placed as unknown as JsonObject);
      this.note(message, choice, `placed: ${reason}`);
      return receipt;
    } catch (error) {
      this.ledger.release(message.activationId);
      throw error;
    }
  }

  /** Sends what was sent before once more. Throws as `send` does. */
  sendAgain(message: ActivationMessage, placement: Placement): Receipt {
    const placed: ActivationMessage = { ...message, gpu: placement };
    return this.dependencies.bus.send(placement.invoker, placed as unknown as JsonObject);
  }

  /** Keeps a decision, to be explained later. */
  note(
    { activationId, action, user }: ActivationMessage,
    { placement, rejected }: PlacementChoice,
    reason: string,
  ): void {
    const at = this.dependencies.clock.now();
    const name = `/${action.path}/${action.name}`;
    const namespace = user.namespace.name;
    this.dependencies.performanceData.decisions.add({
      at,
      activationId,
      action: name,
      namespace,
      policy: this.policy,
      ...(placement && { placement }),
      reason,
      rejected,
    });
  }

  /** Where an activation was sent that has not ended, as far as is known here. */
  placementOf(activationId: string): Placement | undefined {
    return this.ledger.placementOf(activationId);
  }

  /** An activation's run is over. */
  ended(activationId: string): void {
    this.ledger.end(activationId);
  }

  /** An agent gave an activation back. */
  returned(activationId: string): void {
    this.ledger.release(activationId);
  }

  /** A node's agent has told what is there. Gives the activations that should have ended by now and have not. */
  settle(node: NodeStatus): string[] {
    return this.ledger.heard(node, this.dependencies.clock.monotonicMs());
  }

  /** The accounts of the places of live nodes, of those that refused with a newer row only (by node, monotonic ms). */
  accounts(refusedAtMs: ReadonlyMap<string, number> = new Map()): PlaceAccount[] {
    const isOpen = this.isOpen(refusedAtMs);
    return this.ledger.accounts().filter(({ place }) => isOpen(place.node.invoker));
  }

  /** The rows of live nodes. */
  rows(): NodeStatus[] {
    const isOpen = this.isOpen(new Map());
    return this.ledger.rows().filter(({ invoker }) => isOpen(invoker));
  }

  /** The accounts of places by their ids; of those only that are known. */
  accountsOf(ids: readonly string[]): PlaceAccount[] {
    return ids.map((id) => this.ledger.account(id)).filter((account) => account !== undefined);
  }

  /** The reservations on a place, by its id. */
  heldOn(id: string): Iterable<Reservation> {
    return this.ledger.heldOn(id);
  }

  private isOpen(refusedAtMs: ReadonlyMap<string, number>): (invoker: string) => boolean {
    const silentMs = this.dependencies.clock.monotonicMs() - gpuRowTtlMs;
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
