import type { GpuNeed, NodeStatus, Placement } from '@gpuwhisk/common/gpu';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { PlacementRequest } from '@gpuwhisk/gpu/place/least-loaded';
import { settleReservations } from '@gpuwhisk/gpu/view/occupancy';
import type { Reservation } from '@gpuwhisk/gpu/view/occupancy';
import { completionWaitMs } from '../../entitlement/in-flight.js';

/** What was given out and has not ended, as far as is known here. */
export class Reservations {
  private current = new Map<string, { reservation: Reservation; lostMs: number }>();

  constructor(private readonly clock: Clock) {}

  all(): Reservation[] {
    return [...this.current.values()].map(({ reservation }) => reservation);
  }

  add(
    activationId: string,
    { action, namespace, subject, isolation }: PlacementRequest,
    { timeoutMs }: GpuNeed,
    placement: Placement,
    reuses: string | undefined,
  ): void {
    const reservation: Reservation = {
      ...{ activationId, action, namespace, isolation, placement },
      ...(subject !== undefined && { subject }),
      ...(reuses !== undefined && { reuses }),
      ended: false,
    };
    const lostMs = this.clock.monotonicMs() + completionWaitMs(timeoutMs);
    this.current.set(activationId, { reservation, lostMs });
  }

  /** Where an activation that has not ended was sent. */
  placementOf(activationId: string): Placement | undefined {
    const reservation = this.current.get(activationId)?.reservation;
    return reservation?.ended === false ? reservation.placement : undefined;
  }

  /** Its run is over. */
  end(activationId: string): void {
    const found = this.current.get(activationId);
    if (found !== undefined) found.reservation = { ...found.reservation, ended: true };
  }

  /** It never came to run. */
  drop(activationId: string): void {
    this.current.delete(activationId);
  }

  /**
   * A node's agent has told what is there. Gives the activations that should have ended by now and have not: they count
   * no more.
   */
  settle(node: NodeStatus): string[] {
    const lost: string[] = [];
    const nowMs = this.clock.monotonicMs();
    const left = new Map(settleReservations(this.all(), node).map((one) => [one.activationId, one]));
    for (const [activationId, entry] of this.current) {
      const reservation = left.get(activationId);
      const isLost = reservation !== undefined && entry.lostMs <= nowMs;
      if (isLost && !reservation.ended) lost.push(activationId);
      if (reservation === undefined || isLost) this.current.delete(activationId);
      else entry.reservation = reservation;
    }
    return lost;
  }
}
