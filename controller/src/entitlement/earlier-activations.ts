import { activationDocumentId } from '@gpuwhisk/common/entities/activation';
import type { Logger } from '@gpuwhisk/common/logging';
import { StateUnavailableError } from '@gpuwhisk/common/state/cluster-state';
import { NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';
import type { EarlierActivation, InFlight } from './in-flight.js';

/** Dependencies of EarlierActivations. */
export interface EarlierActivationsDependencies {
  inFlight: Pick<InFlight, 'takeOver' | 'has' | 'end'>;
  store: Pick<ArtifactStore, 'get'>;
  clock: Clock;
  logger: Logger;
}

/** Records that are asked for at once. */
const atOnce = 32;
/** The start of a controller waits no longer for records, ms. */
const startWaitMs = 5000;
/** Records may be stored late: they are asked for again after so long, twice as long each time, up to the longest, ms. */
const firstLookMs = 2000;
const longestLookMs = 60_000;

/**
 * Activations that this controller counted as in flight before it was started again. One that completes from now on is told by its
 * message; one that completed meanwhile is known by its record.
 */
export class EarlierActivations {
  private left: EarlierActivation[] = [];
  private timer: Timer | undefined;
  private closed = false;

  constructor(private readonly dependencies: EarlierActivationsDependencies) {}

  /**
   * Takes over what controller number `instance`, by default this one, left. Resolves once each activation that has a record
   * counts no more, after five seconds at most; the rest is looked for later, until it ends or its hold does. To be called once
   * completions are listened to.
   */
  async open(instance?: number): Promise<void> {
    const { inFlight, clock, logger } = this.dependencies;
    try {
      this.left = await inFlight.takeOver(instance);
    } catch (error) {
      if (!(error instanceof StateUnavailableError)) throw error;
      logger.error(
        { error: error.message },
        'activations from before this start count as in flight until their time is over',
      );
      return;
    }
    if (this.left.length === 0) return;
    await new Promise<void>((resolve) => {
      const timer = clock.setTimer(startWaitMs, resolve);
      void this.look(firstLookMs).then(() => {
        timer.cancel();
        resolve();
      });
    });
  }

  close(): void {
    this.closed = true;
    this.timer?.cancel();
  }

  private async look(nextMs: number): Promise<void> {
    const { inFlight, clock } = this.dependencies;
    const waiting = this.left.values();
    const work = async (): Promise<void> => {
      for (const activation of waiting) {
        if (this.closed) return;
        if (inFlight.has(activation.activationId) && (await this.isRecorded(activation))) {
          inFlight.end(activation.activationId);
        }
      }
    };
    await Promise.all(Array.from({ length: atOnce }, work));
    this.left = this.left.filter(({ activationId }) => inFlight.has(activationId));
    if (this.closed || this.left.length === 0) return;
    this.timer = clock.setBackgroundTimer(nextMs, () => void this.look(Math.min(longestLookMs, nextMs * 2)));
  }

  private async isRecorded({ activationId, namespace }: EarlierActivation): Promise<boolean> {
    try {
      await this.dependencies.store.get('activations', activationDocumentId(namespace, activationId));
      return true;
    } catch (error) {
      if (!(error instanceof NoDocumentError)) {
        this.dependencies.logger.warn(
          { activationId, error: String(error) },
          'a record could not be looked up: it is again',
        );
      }
      return false;
    }
  }
}
