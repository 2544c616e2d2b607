import { guestHeaders, invokePath } from '../api.js';
import { medianOf, type BenchContext, type Measurement } from '../bench.js';
import type { PartPlatform } from './part-platforms.js';
import { compareTargets, ratios } from './surface-compare.js';

/** The same action, called as every caller of its kind does: with a key, and from the web without one. */
const targets = [
  { key: 'blocking', path: invokePath('noop', true), headers: guestHeaders },
  { key: 'web', path: '/api/v1/web/guest/default/noop.json', headers: { 'content-type': 'application/json' } },
];

/** A no-op web action over one connection, alternating with blocking invocations of it. */
export async function measureWeb(context: BenchContext, { platform, api }: PartPlatform): Promise<Measurement[]> {
  await api.putAction('noop', { annotations: [{ key: 'web-export', value: true }] });
  const { p50Ms, errors } = await compareTargets(context, platform.url, targets);
  const { blocking = [], web = [] } = p50Ms;
  return [
    medianOf('webRatio', ratios(blocking, web)),
    medianOf('webP50Ms', web),
    medianOf('blockingP50Ms', blocking),
    { name: 'webErrors', value: errors },
  ];
}
