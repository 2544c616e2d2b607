import { SwaggerError, rateLimitExceeded } from '@gpuwhisk/common/gateway-errors';
import type { JsonValue } from '@gpuwhisk/common/json';
import type { Awaitable } from '@gpuwhisk/common/state/cluster-state';
import { textAt, valueAt } from './json-path.js';

/** Calls that are let through in each window of time. */
export interface RateLimit {
  readonly calls: number;
  readonly windowMs: number;
}

const unitsMs: Readonly<Record<string, number>> = { second: 1000, minute: 60_000, hour: 3_600_000, day: 86_400_000 };

/** Each length of a window has counters of its own, so there must be an end to them. */
const maxUnits = 1000;

/** Reads `[{unit, units, rate}]`; an unknown unit is a minute, as in OpenWhisk's gateway. Throws SwaggerError. */
export function compileRateLimit(value: JsonValue | undefined): RateLimit | undefined {
  if (value === undefined || value === null) return undefined;
  const first = Array.isArray(value) ? value[0] : undefined;
  if (first === undefined) return undefined;
  const calls = valueAt(first, 'rate');
  const units = valueAt(first, 'units') ?? 1;
  if (!isCount(calls, 1_000_000_000) || !isCount(units, maxUnits)) {
    throw new SwaggerError(`A rate limit needs a rate above zero, and units from 1 to ${maxUnits}.`);
  }
  return { calls, windowMs: units * (unitsMs[textAt(first, 'unit') ?? ''] ?? 60_000) };
}

function isCount(value: JsonValue | undefined, max: number): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= max;
}

/** Adds one to the count of `key` in the window of `windowMs` that now lies in, and gives the new count. */
export type CountInWindow = (key: string, windowMs: number) => Awaitable<number>;

/** Counts one call of `key` at `nowMs`. Throws ApiError (429) where that is one too many. */
export async function checkRate(count: CountInWindow, limit: RateLimit, key: string, nowMs: number): Promise<void> {
  if ((await count(key, limit.windowMs)) <= limit.calls) return;
  throw rateLimitExceeded(Math.ceil((limit.windowMs - (nowMs % limit.windowMs)) / 1000));
}
