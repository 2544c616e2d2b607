import { expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { SampleReservoir, sampleFault } from './samples.js';
import { inventedSamples } from '../testing/fixtures.js';

const [sample] = inventedSamples(1, 1) as [ReturnType<typeof inventedSamples>[number]];

test.each([
  [{ slowdown: NaN }, 'a slowdown of NaN is not from 0.5 to 1000'],
  [{ slowdown: 1e6 }, 'a slowdown of 1000000 is not from 0.5 to 1000'],
  [{ one: { ...sample.one, share: 0 } }, 'a share of 0 is not above 0 and at most 1'],
  [{ one: { ...sample.one, features: { ...sample.one.features, l2Util: 12 } } }, 'l2Util of 12 is not from 0 to 1'],
  [{ one: { share: 1, features: { dramUtil: 0.5 } as never } }, 'smUtil is missing'],
  [
    { others: [{ ...sample.one, features: { ...sample.one.features, smUtil: NaN } }] },
    'smUtil of NaN is not from 0 to 1',
  ],
  [{ others: new Array(65).fill(sample.one) as (typeof sample.one)[] }, '65 neighbours are more than 64'],
])('%j is refused', (fault, reason) => {
  const reservoir = new SampleReservoir(4, seededRandom(1));
  expect(reservoir.add({ ...sample, ...fault })).toBe(reason);
  expect(reservoir.state()).toEqual({ seen: 0, samples: [] });
});

test('figures other than the fill may be absent', () => {
  expect(sampleFault({ one: { features: { smUtil: 0.5 }, share: 1 }, others: [], slowdown: 1 })).toBeUndefined();
});

test('keeps a random choice of all that it was offered, of its capacity', () => {
  const offered = inventedSamples(2000, 3);
  const reservoir = new SampleReservoir(200, seededRandom(1));
  for (const each of offered) expect(reservoir.add(each)).toBeUndefined();
  const { seen, samples } = reservoir.state();
  expect(seen).toBe(2000);
  expect(samples).toHaveLength(200);
  // A tenth of the early ones are kept, give or take five standard deviations.
  const early = samples.filter((each) => offered.indexOf(each) < 1000).length;
  expect(early).toBeGreaterThan(65);
  expect(early).toBeLessThan(135);
});

test('goes on where it was stored, without what cannot be', () => {
  const first = new SampleReservoir(3, seededRandom(1));
  for (const each of inventedSamples(5, 1)) first.add(each);
  const { seen, samples } = first.state();
  const next = new SampleReservoir(3, seededRandom(2), { seen, samples: [{ ...sample, slowdown: NaN }, ...samples] });
  expect(next.state()).toEqual({ seen, samples });
  expect(sampleFault(sample)).toBeUndefined();
  expect(() => new SampleReservoir(0, seededRandom(1))).toThrow(RangeError);
});
