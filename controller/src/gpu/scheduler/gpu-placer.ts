import type { Config } from '@gpuwhisk/common/config';
import type { MessageBus, Receipt } from '@gpuwhisk/common/bus/message-bus';
import type { Decision, GpuNeed, NodeStatus, Placement } from '@gpuwhisk/common/gpu';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { placeLeastLoaded, placesToKeep } from '@gpuwhisk/gpu/place/least-loaded';
import type { PlacementChoice, PlacementRequest, PlacementView } from '@gpuwhisk/gpu/place/least-loaded';
import type { Reservation } from '@gpuwhisk/gpu/view/occupancy';
import type { Learned } from '../learning/learned.js';
import type { GpuTable } from './gpu-table.js';
import type { LeaseKeeper } from '../handover/lease-keeper.js';
import { Reservations } from './reservations.js';

/** What a GpuPlacer is made of. */
export interface GpuPlacerDependencies {
  bus: MessageBus;
  clock: Clock;
  table: GpuTable;
  /** The right to decide, which one scheduler of the cluster has. */
  lease: Pick<LeaseKeeper, 'epoch'>;
  /** What is known of functions and GPUs, and what was decided. */
  learned: Learned;
  options: Pick<Config['gpu'], 'policy'>;
}

/** What one activation's placement must heed. */
export interface PlacementLimits {
  /** Places that are kept for one that waits for longer. */
  kept: ReadonlySet<string>;
  /** Places that a policy chose: no other will do; absent: any will. */
  only?: ReadonlySet<string>;
  /** By node that refused it, when, monotonic ms: what is known from before is out of date. */
  refusedAtMs: ReadonlyMap<string, number>;
}

const noLimits: PlacementLimits = { kept: new Set(), refusedAtMs: new Map() };

/** Decides where activations run, remembers what it has given out, and sends them there. */
export class GpuPlacer {
  private readonly reservations: Reservations;

  constructor(private readonly dependencies: GpuPlacerDependencies) {
    this.reservations = new Reservations(dependencies.clock);
  }

  /** Whether it may decide now. */
  get isEntitled(): boolean {
    return this.dependencies.lease.epoch !== undefined;
  }

  /** Activations that something was given out to and that have not ended, as far as is known here. */
  get reserved(): number {
    return this.unended().length;
  }

  /** What was given out to activations that have not ended, as far as is known here; the oldest first. */
  unended(): Reservation[] {
    return this.reservations.all().filter(({ ended }) => !ended);
  }

  /** The last decisions, the last one first. */
  decisions(): Decision[] {
    return this.dependencies.learned.decisions.latest();
  }

  place(request: PlacementRequest, limits = noLimits): PlacementChoice {
    return this.isEntitled ? placeLeastLoaded(this.view(limits), request) : { rejected: [] };
  }

  /** The places to keep for a request that nothing can be found for. */
  placesToKeep(request: PlacementRequest, limits: PlacementLimits): string[] {
    return placesToKeep(this.view(limits), request);
  }

  /** Sends an activation where it was placed. Throws TopicFullError, or another Error if the log has failed. */
  send(
    message: ActivationMessage,
    need: GpuNeed,
    request: PlacementRequest,
    choice: PlacementChoice,
    reason = 'placed',
  ): Receipt {
    const { placement, reuses } = choice;
    if (placement === undefined) throw new Error('nothing was chosen');
    const placed: ActivationMessage = { ...message, gpu: placement };
    // Before it is sent: an embedded bus may deliver, run and acknowledge at once.
    this.reservations.add(message.activationId, request, need, placement, reuses);
    try {
      const receipt = this.dependencies.bus.send(placement.invoker, placed as unknown as JsonObject);
      this.note(message, choice, reason);
      return receipt;
    } catch (error) {
      this.reservations.drop(message.activationId);
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
    const { policy } = this.dependencies.options;
    const namespace = user.namespace.name;
    this.dependencies.learned.decisions.add({
      at,
      activationId,
      action: name,
      namespace,
      policy,
      ...(placement && { placement }),
      reason,
      rejected,
    });
  }

  /** Where an activation was sent that has not ended, as far as is known here. */
  placementOf(activationId: string): Placement | undefined {
    return this.reservations.placementOf(activationId);
  }

  /** An activation's run is over. */
  ended(activationId: string): void {
    this.reservations.end(activationId);
  }

  /** An agent gave an activation back. */
  returned(activationId: string): void {
    this.reservations.drop(activationId);
  }

  /** A node's agent has told what is there. Gives the activations that should have ended by now and have not. */
  settle(node: NodeStatus): string[] {
    return this.reservations.settle(node);
  }

  /** The nodes that have been heard of since they refused; `refusedAtMs` has by node when, monotonic ms. */
  heardSince(refusedAtMs: ReadonlyMap<string, number>): ReadonlySet<string> {
    const nodes = this.dependencies.table.nodes((invoker) => refusedAtMs.get(invoker) ?? -Infinity);
    return new Set(nodes.map(({ invoker }) => invoker));
  }

  /** All that a placement is decided on. */
  view({ kept, only, refusedAtMs }: PlacementLimits = noLimits): PlacementView {
    const { table, clock, lease } = this.dependencies;
    return {
      nodes: table.nodes((invoker) => refusedAtMs.get(invoker) ?? -Infinity),
      reservations: this.reservations.all(),
      kept,
      ...(only && { only }),
      epoch: lease.epoch ?? 0,
      at: clock.now(),
    };
  }
}
