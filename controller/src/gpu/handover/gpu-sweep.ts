import { activationDocumentId } from '@gpuwhisk/common/entities/activation';
import type { Logger } from '@gpuwhisk/common/logging';
import { NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';
import type { Reservation } from '@gpuwhisk/gpu/view/occupancy';
import type { GpuTable } from '../state/gpu-table.js';

/** The reservations of the controller that decides. */
export interface ReservationSource {
  /** Whether this controller decides now. */
  readonly isLeader: boolean;
  /** Reservations of activations that have not ended, as far as is known here; the oldest first. */
  unended(): readonly Reservation[];
}

/** Dependencies of GpuSweep. */
export interface GpuSweepDependencies {
  store: ArtifactStore;
  table: GpuTable;
  clock: Clock;
  logger: Logger;
  placer: ReservationSource;
  /** The run of an activation is over. */
  ended: (activationId: string) => void;
}

/** How often it is looked, ms; what was placed since the last look is left for the next one. */
const sweepMs = 10_000;
/** Records that are asked for in one look, at most. */
const maxAsked = 100;

/**
 * Finds activations that have ended without a message to the leader (messages of other controllers are lost while the
 * cluster's state is away), so that what they had of a GPU is given out again: no invoker has them, and they are recorded.
 */
export class GpuSweep {
  private timer: Timer | undefined;
  private closed = false;

  constructor(private readonly dependencies: GpuSweepDependencies) {}

  open(): void {
    this.timer = this.dependencies.clock.setBackgroundTimer(sweepMs, () => {
      void this.sweep().finally(() => {
        if (!this.closed) this.open();
      });
    });
  }

  close(): void {
    this.closed = true;
    this.timer?.cancel();
  }

  private async sweep(): Promise<void> {
    const { table, clock, placer, ended, logger } = this.dependencies;
    if (!placer.isLeader) return;
    const inHand = new Set(
      table
        .nodes()
        .flatMap(({ residents, inHand: held = [] }) => [
          ...residents.flatMap(({ activations }) => activations),
          ...held.map(({ activationId }) => activationId),
        ]),
    );
    const before = clock.now() - sweepMs;
    const asked = placer
      .unended()
      .filter(({ activationId, placement }) => placement.at <= before && !inHand.has(activationId));
    try {
      for (const { activationId, namespace } of asked.slice(0, maxAsked)) {
        if (await this.isRecorded(namespace, activationId)) ended(activationId);
      }
    } catch (error) {
      logger.warn({ error: String(error) }, 'activations whose end was not heard of could not be looked up');
    }
  }

  private async isRecorded(namespace: string, activationId: string): Promise<boolean> {
    try {
      await this.dependencies.store.get('activations', activationDocumentId(namespace, activationId));
      return true;
    } catch (error) {
      if (error instanceof NoDocumentError) return false;
      throw error;
    }
  }
}
