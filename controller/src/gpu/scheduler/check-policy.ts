import { ConfigError } from '@gpuwhisk/common/config';
import type { Config } from '@gpuwhisk/common/config';
import { compositionOf } from '@gpuwhisk/gpu/policies/make-policy';

/**
 * Checks the configured policy. Throws ConfigError for an unknown policy or stage, or for stages that do not fit together.
 */
export function checkPolicy({ policy }: Pick<Config['gpu'], 'policy'>): void {
  try {
    compositionOf(policy);
  } catch (error) {
    if (error instanceof RangeError) throw new ConfigError(`gpu.policy: ${error.message}`);
    throw error;
  }
}
