import { activationDocumentId } from '../entities/activation-codec.js';
import type { Logger } from '../logging.js';
import type { ActivationMessage } from '../messages.js';
import { NoDocumentError } from '../store/artifact-store.js';
import type { ArtifactStore } from '../store/artifact-store.js';
import { sleep } from '../system/clock.js';
import type { Clock } from '../system/clock.js';

const retryMs = 1000;

/**
 * Whether an activation has a record. Asks the store until it answers: running or recording one twice would be worse
 * than waiting.
 */
export async function isRecorded(
  { store, clock, logger }: { store: ArtifactStore; clock: Clock; logger: Logger },
  { user, activationId }: ActivationMessage,
): Promise<boolean> {
  for (;;) {
    try {
      await store.get('activations', activationDocumentId(user.namespace.name, activationId));
      return true;
    } catch (error) {
      if (error instanceof NoDocumentError) return false;
      logger.error({ activationId, error: String(error) }, 'a record could not be looked up');
      await sleep(clock, retryMs);
    }
  }
}
