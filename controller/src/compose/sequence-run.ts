import { ActivationStatus } from '@gpuwhisk/common/entities/activation';
import type { ActivationResponse } from '@gpuwhisk/common/entities/activation';
import { isSequence } from '@gpuwhisk/common/entities/exec-codec';
import { isApiError, sequenceTooLong } from '@gpuwhisk/common/errors';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { ResolvedAction } from '../actions/action-resolver.js';
import type { ComponentTally } from './component-tally.js';
import { applicationError, whiskError } from './composite.js';
import type { Payload, Stage } from './composite.js';
import type { InvokeOutcome } from '../invoke/invoke-service.js';
import type { FoundComponent } from './sequence-check.js';

/** How a sequence ends where the platform fails. */
export const sequenceFailed = (): ActivationResponse => whiskError('Sequence failed.');

/**
 * Runs components one after the other, each on the result of the one before, until one's result has a field
 * `error`, as OpenWhisk's SequenceActions does. `count` is shared with the sequences around and inside. Never rejects.
 */
export async function runSequence(
  stage: Stage,
  components: readonly FoundComponent[],
  payload: Payload,
  tally: ComponentTally,
  count: { actions: number },
): Promise<ActivationResponse> {
  let response: ActivationResponse = { statusCode: ActivationStatus.success, result: payload };
  for (const [at, { found, again }] of components.entries()) {
    if (count.actions >= stage.maxLength || stage.exhausted) return applicationError(sequenceTooLong().message);
    let component: ResolvedAction;
    let outcome: InvokeOutcome;
    try {
      // What came before may have taken long enough for an update, and invokers only run the latest.
      component = await (at === 0 ? found : again());
    } catch (error) {
      // Missing, or not the caller's to use.
      return isApiError(error) && error.status < 500 ? applicationError(error.message) : sequenceFailed();
    }
    if (!isSequence(component.action.exec)) count.actions++;
    try {
      outcome = await stage.invoke(component, resultOf(response), { sequence: count });
    } catch {
      return sequenceFailed();
    }
    if (outcome.type === 'accepted') {
      tally.ids.push(outcome.activationId);
      return whiskError(`Timeout reached when retrieving activation ${outcome.activationId} for sequence component.`);
    }
    tally.add(outcome.activation);
    response = outcome.activation.response;
    if (isJsonObject(response.result) && response.result.error !== undefined) return response;
  }
  return response;
}

function resultOf({ result }: ActivationResponse): Payload {
  return isJsonObject(result) || Array.isArray(result) ? result : {};
}
