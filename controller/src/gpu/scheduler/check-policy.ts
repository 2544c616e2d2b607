import { ConfigError } from '@gpuwhisk/common/config';
import type { Config } from '@gpuwhisk/common/config';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { compositionOf, makePolicy } from '@gpuwhisk/gpu/policies/make-policy';
import type { PolicyChoice } from '@gpuwhisk/gpu/policies/make-policy';
import { capacityModel } from '@gpuwhisk/gpu/predict/slowdown-predictor';

interface Chosen extends Pick<Config['gpu'], 'admission'> {
  policy: PolicyChoice;
}

/**
 * Why a policy cannot be used, in one line; undefined if it can: an unknown policy or stage, stages that do not fit together, and
 * stages that cannot be made, as those of a policy module may be.
 */
export function policyProblem({ policy, admission }: Chosen): string | undefined {
  try {
    compositionOf(policy);
  } catch (error) {
    if (error instanceof RangeError) return error.message;
    throw error;
  }
  try {
    makePolicy(policy, { predictorOf: () => capacityModel, admission, random: seededRandom(1) });
    return undefined;
  } catch (error) {
    const [reason] = String(error).split('\n');
    return `'${compositionOf(policy).name}' cannot be made: ${reason}`;
  }
}

/** Checks the configured policy. Throws ConfigError for one with a `policyProblem`. */
export function checkPolicy(chosen: Chosen): void {
  const problem = policyProblem(chosen);
  if (problem !== undefined) throw new ConfigError(`gpu.policy: ${problem}`);
}
