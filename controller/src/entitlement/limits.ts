// Bounds on a namespace's actions, by its own limits and the system's.
import type { Config } from '@gpuwhisk/common/config';
import type { Identity } from '@gpuwhisk/common/entities/identity';
import { boundsFor, maxPayloadBytesFor } from '@gpuwhisk/common/entities/limits';
import type { LimitBounds } from '@gpuwhisk/common/entities/limits';
import { gpuShareTooLarge } from '@gpuwhisk/common/errors';
import { shareClasses } from '@gpuwhisk/common/gpu';
import type { GpuNeed } from '@gpuwhisk/common/gpu';
import { shareOf } from '@gpuwhisk/gpu/view/shares';

/** Where the limits of namespaces without their own are. */
interface LimitsContext {
  config: Pick<Config, 'limits'>;
}

/** The bounds on what the caller's actions may ask for. */
export function boundsOf({ config }: LimitsContext, identity: Identity): LimitBounds {
  return boundsFor(config.limits, identity.limits);
}

/** As boundsOf, for actions with annotation `gpu`. */
export function gpuBoundsOf({ config }: LimitsContext, identity: Identity): LimitBounds {
  const { limits } = config;
  const { gpuMaxTimeoutMs: maxTimeoutMs, gpuMaxMemoryMiB: maxMemoryMiB } = limits;
  return boundsFor({ ...limits, maxTimeoutMs, maxMemoryMiB }, identity.limits);
}

/** The largest payload that the caller may send, bytes. */
export function maxPayloadBytesOf({ config }: LimitsContext, identity: Identity): number {
  return maxPayloadBytesFor(config.limits, identity.limits);
}

/**
 * What a function needs, bounded to the share classes that its namespace may have: those up to `maxPercent`, the smallest
 * in any case; undefined: all. Throws ApiError (429) where its owner asks for more.
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
