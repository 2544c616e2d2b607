import type { Config } from '@gpuwhisk/common/config';
import type { Identity } from '@gpuwhisk/common/entities/identity';
import { boundsFor, maxPayloadBytesFor } from '@gpuwhisk/common/entities/limits';
import type { LimitBounds } from '@gpuwhisk/common/entities/limits';

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
