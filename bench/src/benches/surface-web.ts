import { guestHeaders, invokePath, smallBody } from '../api.js';
import { medianOf, type BenchContext, type Measurement } from '../bench.js';
import { errorsOf, type LoadRequest } from '../load/load.js';
import type { Surface } from './surface.js';

const warmUpS = 3;

/** The same action, called as every caller of its kind does: with a key, and from the web without one. */
const targets = [
  { key: 'blocking', path: invokePath('noop', true), headers: guestHeaders },
  { key: 'web', path: '/api/v1/web/guest/default/noop.json', headers: { 'content-type': 'application/json' } },
] as const;
type Key = (typeof targets)[number]['key'];

/** A no-op web action over one connection, alternating with blocking invocations of it. */
export async function measureWeb(context: BenchContext, { platform, api }: Surface): Promise<Measurement[]> {
  const { options, load, say } = context;
  await api.putAction('noop', { annotations: [{ key: 'web-export', value: true }] });

  const requestFor = ({ path, headers }: (typeof targets)[number], seconds: number): LoadRequest => ({
    baseUrl: platform.url,
    paths: [path],
    headers,
    body: smallBody,
    connections: 1,
    seconds,
    seed: options.seed,
  });

  let errors = 0;
  for (const target of targets) {
    const warmUp = await load.run({ ...requestFor(target, warmUpS), countStatuses: true });
    errors += errorsOf(warmUp, 200);
  }
  const p50Ms: Record<Key, number[]> = { blocking: [], web: [] };
  for (let round = 0; round < options.rounds; round += 1) {
    // Every other round runs backwards: a drift of the machine then weighs on both alike.
    for (const target of round % 2 === 0 ? targets : targets.toReversed()) {
      const result = await load.run(requestFor(target, options.seconds));
      errors += errorsOf(result, 200);
      p50Ms[target.key].push(result.p50Ms);
      say(`  round ${round + 1} ${target.key}: p50 ${result.p50Ms.toFixed(3)} ms`);
    }
  }
  return [
    medianOf(
      'webRatio',
      p50Ms.web.map((web, round) => web / (p50Ms.blocking[round] as number)),
    ),
    medianOf('webP50Ms', p50Ms.web),
    medianOf('blockingP50Ms', p50Ms.blocking),
    { name: 'webErrors', value: errors },
  ];
}
