import { ConfigError } from '@gpuwhisk/common/config';
import type { Config } from '@gpuwhisk/common/config';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { compositionOf, makePolicy } from '@gpuwhisk/gpu/policies/make-policy';
import { capacityModel } from '@gpuwhisk/gpu/predict/slowdown-predictor';

/**
 * Checks the configured policy. Throws ConfigError for an unknown policy or stage, for stages that do not fit together, and
 * for stages that cannot be made, as those of a policy module may be.
 */
export function checkPolicy({ policy, admission }: Pick<Config['gpu'], 'policy' | 'admission'>): void {
  try {
    compositionOf(policy);
  } catch (error) {
    if (error instanceof RangeError) throw new ConfigError(`gpu.policy: ${error.message}`);
    throw error;
  }
  try {
    makePolicy(policy, { predictorOf: () => capacityModel, admission, random: seededRandom(1) });
  } catch (error) {
    const [reason] = String(error).split('\n');
    throw new ConfigError(`gpu.policy: '${compositionOf(policy).name}' cannot be made: ${reason}`, { cause: error });
  }
}
