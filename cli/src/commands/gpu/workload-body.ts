import type { Flags } from '../../args/flags.js';
import { usageError } from '../../errors.js';
import type { JsonMap } from '../../json/json.js';

/** Where workloads are. */
export const workloadsRoute = 'gpu/workloads';

/** What the flags say of a workload. @throws WskError */
export function workloadBody(name: string, flags: Flags): JsonMap {
  const body: JsonMap = new Map([['name', name]]);
  if (flags.given('device')) body.set('device', flags.text('device'));
  if (flags.given('memory')) body.set('memoryMiB', flags.int('memory'));
  if (flags.given('degradation')) {
    const fraction = Number(flags.text('degradation'));
    if (!(fraction >= 0 && fraction <= 1)) throw usageError('--degradation must be a number from 0 to 1');
    body.set('maxDegradation', fraction);
  }
  return body;
}
