import { expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { inventedSamples } from '../testing/fixtures.js';
import { TrainingSet } from './samples.js';

test('every fifth sample is kept from training, and each is in one place', () => {
  const set = new TrainingSet(seededRandom(1));
  const samples = inventedSamples(10, 1);
  for (const sample of samples) expect(set.add(sample)).toBeUndefined();
  const { training, heldOut, fresh } = set.state();
  expect(heldOut.samples).toEqual([samples[4], samples[9]]);
  expect([...training.samples, ...heldOut.samples]).toHaveLength(10);
  expect(fresh).toBe(10);
});

test('a sample that cannot be is refused and counts for nothing', () => {
  const set = new TrainingSet(seededRandom(1));
  const [sample] = inventedSamples(1, 1);
  expect(set.add({ ...sample!, slowdown: NaN })).toContain('a slowdown of NaN');
  expect(set.state()).toMatchObject({ fresh: 0, training: { seen: 0 } });
});

test('it is bounded, and goes on after a restart where it was', () => {
  const set = new TrainingSet(seededRandom(1));
  for (const sample of inventedSamples(1000, 1)) set.add(sample);
  const state = set.state();
  expect([state.training.samples.length, state.heldOut.samples.length]).toEqual([400, 100]);
  const next = new TrainingSet(seededRandom(1), state);
  expect(next.state()).toEqual(state);
  for (const sample of inventedSamples(4, 2)) next.add(sample);
  expect(next.state()).toMatchObject({ fresh: 1004, training: { seen: 804 }, heldOut: { seen: 200 } });
});
