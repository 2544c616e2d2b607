// Former engine and simulator play one trace of gamma arrivals under Dilu; each kind of divergence is a named rule.
import { describe, expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { latencySurface } from '../../model/latency-surface.js';
import { playFormer, rules, type Rule } from './former-engine.js';
import { simulate } from './simulated.js';
import { firstDivergence, gammaArrivals, type Divergence, type Trace, type TracedFunction } from './trace.js';

const all = new Set(Object.keys(rules) as Rule[]);
const without = (rule: Rule): ReadonlySet<Rule> => new Set([...all].filter((one) => one !== rule));

/** A batch of n takes 10 (1 + n) ms at half of the GPU or more, and twice that at a quarter. */
const surface = latencySurface(
  [1, 2, 4].flatMap((batch) =>
    [0.25, 0.5, 1].map((share) => ({ batch, share, latencyMs: 10 * (1 + batch) * (share < 0.5 ? 2 : 1) })),
  ),
);
const functionWith = (batch: number): TracedFunction => ({ surface, sloMs: 200, batch, request: 0.25, limit: 0.5 });

/** Gamma arrivals at one rate after the other, each for so many seconds. */
function traceOf(cv: number, parts: readonly { perS: number; lengthS: number }[]): Trace {
  const random = seededRandom(1);
  let lengthS = 0;
  const arrivals = parts.flatMap((part) => {
    const from = lengthS * 1000;
    lengthS += part.lengthS;
    return Array.from(gammaArrivals(part.perS, cv, part.lengthS, random), (at) => from + at);
  });
  return { arrivals: Float64Array.from(arrivals), lengthS, coldMs: 5000 };
}

/** What leaving a rule out changes first, in whole ms; undefined: nothing. */
type FirstEvents = Partial<Record<Rule, [what: string, former: number | undefined, simulated: number | undefined]>>;

function rounded(found: Divergence | undefined): [string, number | undefined, number | undefined] | undefined {
  const whole = (ms: number | undefined): number | undefined => (ms === undefined ? undefined : Math.round(ms));
  return found && [found.what, whole(found.former), whole(found.simulated)];
}

interface Case {
  served: TracedFunction;
  trace: Trace;
  svr: { former: number; simulated: number };
  launches: number;
  retirements: number;
  firstEvents: FirstEvents;
}

const cases: Record<string, Case> = {
  'one request at a time': {
    served: functionWith(1),
    trace: traceOf(2, [
      { perS: 60, lengthS: 30 },
      { perS: 10, lengthS: 50 },
    ]),
    svr: { former: 0.0496, simulated: 0.0496 },
    launches: 2,
    retirements: 2,
    firstEvents: {
      tick: ['request 405 starts', 6000, 6001],
    },
  },
  'batches of four': {
    served: functionWith(4),
    trace: traceOf(4, [
      { perS: 100, lengthS: 25 },
      { perS: 20, lengthS: 50 },
    ]),
    svr: { former: 0.1181, simulated: 0.1906 },
    launches: 2,
    retirements: 2,
    firstEvents: {
      bind: ['request 1 starts', 0, 20],
      tick: ['request 766 starts', 6000, 6005],
    },
  },
};

describe.each(Object.entries(cases))('Dilu with %s', (_, { served, trace, ...expected }) => {
  const simulated = simulate(served, trace);

  test('the former engine with the named rules is equal to the simulator, event by event', () => {
    const found = playFormer(served, trace, all);
    expect(firstDivergence(found, simulated)).toBeUndefined();
    const { launches, retirements } = simulated;
    expect([launches.length, retirements.length]).toEqual([expected.launches, expected.retirements]);
    const former = playFormer(served, trace);
    expect([former.svr, simulated.svr].map((svr) => Math.round(svr * 1e4) / 1e4)).toEqual([
      expected.svr.former,
      expected.svr.simulated,
    ]);
  });

  test.each([...all])('rule %s: its first event', (rule) => {
    const found = firstDivergence(playFormer(served, trace, without(rule)), simulated);
    expect(rounded(found)).toEqual(expected.firstEvents[rule]);
  });
});

test('every rule has a first event in some trace', () => {
  const named = Object.values(cases).flatMap(({ firstEvents }) => Object.keys(firstEvents));
  expect(new Set(named)).toEqual(all);
});

describe('what no rule names is told', () => {
  const served = functionWith(1);
  const trace = traceOf(2, [{ perS: 60, lengthS: 10 }]);

  test('of the stages', () => {
    const lazier = simulate(served, trace, { base: 'dilu', settings: { surgeSamples: 5 } });
    expect(rounded(firstDivergence(playFormer(served, trace, all), lazier))?.[0]).toBe('launch 0');
  });

  test('of the truth', () => {
    const slower = latencySurface([
      { batch: 1, share: 0.5, latencyMs: 21 },
      { batch: 1, share: 1, latencyMs: 20 },
    ]);
    const former = playFormer({ ...served, surface: slower, request: 0.5 }, trace, all);
    expect(rounded(firstDivergence(former, simulate(served, trace)))?.[0]).toBe('request 0 ends');
  });
});
