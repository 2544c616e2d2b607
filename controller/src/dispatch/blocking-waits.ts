import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import { activationDocumentId, readActivation } from '@gpuwhisk/common/entities/activation';
import type { ApiError } from '@gpuwhisk/common/errors';
import type { Logger } from '@gpuwhisk/common/logging';
import { NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import { ShortLivedMap } from '@gpuwhisk/common/short-lived-map';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';
import type { InvokeOutcome } from '../invoke/invoke-service.js';

/** Interval of looks for a record, ms: the message with the result may be lost. */
const lookMs = 15_000;
/** Interval of looks for a record after the activation has ended, and of the check for due callers, ms. */
const lookEndedMs = 1000;

interface Wait {
  namespace: string;
  /** Ends the wait. */
  end: Timer;
  /** Time of the next look for the record, monotonic ms; Infinity during a look. */
  lookAtMs: number;
  hasEnded: boolean;
  settle(outcome: InvokeOutcome): void;
  refuse(error: ApiError): void;
}

/** Dependencies of BlockingWaits. */
export interface BlockingWaitsDependencies {
  clock: Clock;
  logger: Logger;
  /** The store of the records. */
  store: Pick<ArtifactStore, 'get'>;
}

/** Callers that wait for the results of their activations. */
export class BlockingWaits {
  private readonly waits = new ShortLivedMap<string, Wait>();
  private isLooking = false;
  private isClosed = false;

  constructor(private readonly dependencies: BlockingWaitsDependencies) {}

  /** Number of waiting callers. */
  get size(): number {
    return this.waits.size;
  }

  /**
   * Resolves with the result, or with the id after `waitMs` or once this is closed. Rejects with the error if the activation is
   * refused.
   */
  wait(namespace: string, activationId: string, waitMs: number): Promise<InvokeOutcome> {
    if (this.isClosed) return Promise.resolve({ type: 'accepted', activationId });
    const { clock } = this.dependencies;
    return new Promise((settle, refuse) => {
      const end = clock.setTimer(waitMs, () => this.give(activationId));
      const lookAtMs = clock.monotonicMs() + lookMs;
      this.waits.set(activationId, { namespace, end, lookAtMs, hasEnded: false, settle, refuse });
      this.lookLater();
    });
  }

  /** Answers the caller of an activation with its result. */
  settle(activation: WhiskActivation): void {
    const wait = this.take(activation.activationId);
    wait?.settle({ type: 'completed', activation });
  }

  /** Notes that an activation has ended; if no message brings the result, the record is read. */
  ended(activationId: string): void {
    const wait = this.waits.get(activationId);
    if (wait === undefined || wait.hasEnded) return;
    wait.hasEnded = true;
    if (wait.lookAtMs !== Infinity) wait.lookAtMs = this.dependencies.clock.monotonicMs() + lookEndedMs;
  }

  /** Rejects the wait for an activation that is not run; returns false if no caller waits. */
  refuse(activationId: string, error: ApiError): boolean {
    const wait = this.take(activationId);
    wait?.refuse(error);
    return wait !== undefined;
  }

  /** Ends the wait of an activation without an answer. */
  forget(activationId: string): void {
    this.take(activationId);
  }

  /** Answers all waiting callers with their ids, and callers that come later: a closing server has connections for a while. */
  close(): void {
    this.isClosed = true;
    for (const activationId of this.waits.keys()) this.give(activationId);
  }

  private give(activationId: string): void {
    this.take(activationId)?.settle({ type: 'accepted', activationId });
  }

  private take(activationId: string): Wait | undefined {
    const wait = this.waits.get(activationId);
    wait?.end.cancel();
    this.waits.delete(activationId);
    return wait;
  }

  /** One timer serves all callers, as most wait for only a few ms. */
  private lookLater(): void {
    if (this.isLooking || this.waits.size === 0) return;
    this.isLooking = true;
    const { clock } = this.dependencies;
    clock.setBackgroundTimer(lookEndedMs, () => {
      this.isLooking = false;
      const nowMs = clock.monotonicMs();
      for (const [activationId, wait] of this.waits.entries())
        if (wait.lookAtMs <= nowMs) void this.look(activationId, wait);
      this.lookLater();
    });
  }

  private async look(activationId: string, wait: Wait): Promise<void> {
    const { store, logger, clock } = this.dependencies;
    wait.lookAtMs = Infinity;
    try {
      const found = await store.get('activations', activationDocumentId(wait.namespace, activationId));
      this.settle({ ...readActivation(found), logs: [] });
    } catch (error) {
      if (!(error instanceof NoDocumentError)) {
        logger.warn({ activationId, error: String(error) }, 'the record for a waiting caller could not be looked up');
      }
    }
    wait.lookAtMs = clock.monotonicMs() + (wait.hasEnded ? lookEndedMs : lookMs);
  }
}
