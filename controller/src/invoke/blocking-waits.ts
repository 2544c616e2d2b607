import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import { activationDocumentId, readActivation } from '@gpuwhisk/common/entities/activation-codec';
import type { ApiError } from '@gpuwhisk/common/errors';
import type { Logger } from '@gpuwhisk/common/logging';
import { NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';
import type { InvokeOutcome } from './invoke-service.js';

/** The record is looked for so often: what tells the result may be lost. */
const lookMs = 15_000;
/** And so often once the activation is known to have ended. */
const lookEndedMs = 1000;

interface Wait {
  namespace: string;
  /** Ends it. */
  end: Timer;
  /** The next look for the record. */
  look: Timer;
  lookMs: number;
  settle(outcome: InvokeOutcome): void;
  refuse(error: ApiError): void;
}

export interface BlockingWaitsDependencies {
  clock: Clock;
  logger: Logger;
  /** Has the records. */
  store: Pick<ArtifactStore, 'get'>;
}

/** Callers who wait for the results of their activations. */
export class BlockingWaits {
  private readonly waits = new Map<string, Wait>();

  constructor(private readonly dependencies: BlockingWaitsDependencies) {}

  get size(): number {
    return this.waits.size;
  }

  /** Resolves with the result, or after `waitMs` with the id; rejects with what it was refused for. */
  wait(namespace: string, activationId: string, waitMs: number): Promise<InvokeOutcome> {
    return new Promise((settle, refuse) => {
      const end = this.dependencies.clock.setTimer(waitMs, () => this.give(activationId));
      const look = this.lookLater(activationId, lookMs);
      this.waits.set(activationId, { namespace, end, look, lookMs, settle, refuse });
    });
  }

  /** The result is there. */
  settle(activation: WhiskActivation): void {
    const wait = this.take(activation.activationId);
    wait?.settle({ type: 'completed', activation });
  }

  /** It has ended; if its result does not come, the record has it. */
  ended(activationId: string): void {
    const wait = this.waits.get(activationId);
    if (wait === undefined || wait.lookMs === lookEndedMs) return;
    wait.lookMs = lookEndedMs;
    wait.look.cancel();
    wait.look = this.lookLater(activationId, lookEndedMs);
  }

  /** It is not run after all; false if nobody waits. */
  refuse(activationId: string, error: ApiError): boolean {
    const wait = this.take(activationId);
    wait?.refuse(error);
    return wait !== undefined;
  }

  /** Nobody waits for it any more. */
  forget(activationId: string): void {
    this.take(activationId);
  }

  /** All that wait get their ids. */
  close(): void {
    for (const activationId of [...this.waits.keys()]) this.give(activationId);
  }

  private give(activationId: string): void {
    this.take(activationId)?.settle({ type: 'accepted', activationId });
  }

  private take(activationId: string): Wait | undefined {
    const wait = this.waits.get(activationId);
    wait?.end.cancel();
    wait?.look.cancel();
    this.waits.delete(activationId);
    return wait;
  }

  private lookLater(activationId: string, ms: number): Timer {
    return this.dependencies.clock.setTimer(ms, () => void this.look(activationId));
  }

  private async look(activationId: string): Promise<void> {
    const { store, logger } = this.dependencies;
    const wait = this.waits.get(activationId);
    if (wait === undefined) return;
    try {
      const found = await store.get('activations', activationDocumentId(wait.namespace, activationId));
      this.settle({ ...readActivation(found), logs: [] });
    } catch (error) {
      if (!(error instanceof NoDocumentError)) {
        logger.warn({ activationId, error: String(error) }, 'a record that a caller waits for could not be looked up');
      }
    }
    if (this.waits.get(activationId) === wait) wait.look = this.lookLater(activationId, wait.lookMs);
  }
}
