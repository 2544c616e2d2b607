import { guestHeaders, invokePath } from '../api.js';
import { medianOf, type BenchContext, type Measurement } from '../bench.js';
import type { PartPlatform } from './part-platforms.js';
import { compareTargets, ratios } from './surface-compare.js';

const targets = [
  { key: 'one', path: invokePath('noop', true), headers: guestHeaders },
  { key: 'three', path: invokePath('sequence', true), headers: guestHeaders },
];

/** A sequence of three no-ops over one connection, alternating with one no-op alone. */
export async function measureSequence(context: BenchContext, { platform, api }: PartPlatform): Promise<Measurement[]> {
  await api.putAction('noop');
  const exec = { kind: 'sequence', components: ['/_/noop', '/_/noop', '/_/noop'] };
  await api.json('PUT', '/api/v1/namespaces/_/actions/sequence', { exec });
  const { p50Ms, errors } = await compareTargets(context, platform.url, targets);
  const { one = [], three = [] } = p50Ms;
  return [
    medianOf('sequenceRatio', ratios(one, three)),
    medianOf('sequenceP50Ms', three),
    medianOf('sequenceOneP50Ms', one),
    { name: 'sequenceErrors', value: errors },
  ];
}
