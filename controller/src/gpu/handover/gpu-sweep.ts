import { activationDocumentId } from '@gpuwhisk/common/entities/activation';
import type { Logger } from '@gpuwhisk/common/logging';
import { NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';
import type { Reservation } from '@gpuwhisk/gpu/ledger/occupancy';
import type { GpuTable } from '../state/gpu-table.js';

/** The reservations of the leader. */
export interface ReservationSource {
  /** Whether this controller is the leader. */
  readonly isLeader: boolean;
  /** Reservations of activations whose end is not known here, oldest first. */
  unended(): readonly Reservation[];
}

/** Dependencies of GpuSweep. */
export interface GpuSweepDependencies {
  store: ArtifactStore;
  table: GpuTable;
  clock: Clock;
  logger: Logger;
  placer: ReservationSource;
  /** Called with an activation whose run has ended. */
  ended: (activationId: string) => void;
}

/** Interval of the search, ms. Activations placed since the last search are left for the next one. */
const sweepMs = 10_000;
/** Most records requested in one search. */
const maxAsked = 100;

/**
 * Frees the reservations of activations that ended without a message to the leader, as messages of controllers are lost
 * while the cluster's state is unavailable. Such activations are on no invoker and have a record.
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
      logger.warn({ error: String(error) }, 'records of activations without a completion could not be looked up');
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
