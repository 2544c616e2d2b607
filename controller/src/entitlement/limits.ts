// Bounds on a namespace's actions, by its own limits and the system's.
import type { Config } from '@gpuwhisk/common/config';
import type { Identity } from '@gpuwhisk/common/entities/identity';
import { boundsFor, maxPayloadFor } from '@gpuwhisk/common/entities/limits';
import type { BoundNames, ByteBound, LimitBounds } from '@gpuwhisk/common/entities/limits';
import { gpuShareTooLarge } from '@gpuwhisk/common/errors';
import { shareClasses } from '@gpuwhisk/common/gpu';
import type { GpuNeed } from '@gpuwhisk/common/gpu';
import { shareOf } from '@gpuwhisk/gpu/view/shares';

/** Where the limits for namespaces without their own stand. */
interface LimitsContext {
  config: Pick<Config, 'limits'>;
}

/** The bounds on limits of the caller's actions. */
export function boundsOf({ config }: LimitsContext, identity: Identity): LimitBounds {
  return boundsFor(config.limits, identity.limits);
}

const gpuNames: BoundNames = { maxTimeoutMs: 'gpuMaxTimeoutMs', maxMemoryMiB: 'gpuMaxMemoryMiB' };

/** As boundsOf, for actions with annotation `gpu`. */
export function gpuBoundsOf({ config }: LimitsContext, identity: Identity): LimitBounds {
  return boundsFor(config.limits, identity.limits, gpuNames);
}

/** The largest payload that the caller may send. */
export function maxPayloadOf({ config }: LimitsContext, identity: Identity): ByteBound {
  return maxPayloadFor(config.limits, identity.limits);
}

/**
 * A function's need, limited to share classes up to `maxPercent` (the smallest class is always allowed; undefined: all
 * classes). Throws ApiError (429) if the function asks for more.
 */
export function withinShare(need: GpuNeed, maxPercent = 100): GpuNeed {
  const maxShareClass = shareClasses.findLast((one) => one <= maxPercent) ?? shareClasses[0];
  if (maxShareClass === 100) return need;
  const { mpsPercent, smLimit, smRequest = 0 } = need;
  const isFixed = mpsPercent !== undefined || smLimit !== undefined;
  const asked = Math.max(isFixed ? shareOf(need).shareClass : 0, Math.ceil(smRequest * 100));
  if (asked > maxShareClass) throw gpuShareTooLarge(asked, maxPercent);
  return { ...need, maxShareClass };
}
