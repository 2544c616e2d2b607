import { expect, test } from '@jest/globals';
import { fitStandIn, contentionOf, fullBatches, standInErrors, standInSides } from './stand-in-fit.js';
import { workloadKey } from './sets.js';
import type { MeasuredSet, Member } from './sets.js';

const models = { narrow: 64, middle: 16, wide: 4 };
const shares = [1, 2, 3, 4, 7].map((slices) => slices / 7);

/** ParvaGPU's form: n of one model in a slice, of which each takes as long as the sum of their fills, if that is more than 1. */
function sets(): MeasuredSet[] {
  return Object.entries(models).flatMap(([model, fullBatch]) =>
    [1, 2, 4, 8, 16, 32].flatMap((batch) =>
      shares.flatMap((share) =>
        [1, 2, 3, 4].map((count): MeasuredSet => {
          const workload = workloadKey({ source: 'parvagpu', model, variant: '', batch, task: 'inference' });
          const fill = Math.min(1, batch / fullBatch) / share;
          const alone = Math.max(1, fill);
          const contention = Math.max(1, count * fill) / alone;
          const member: Member = { workload, share, stretch: alone, ...(count > 1 && { contention }) };
          return {
            ...{ source: 'parvagpu', row: `planted:${batch}`, gpu: 'a100-80', mode: 'mig' },
            members: Array.from({ length: count }, () => member),
          };
        }),
      ),
    ),
  );
}

test('the batch that fills a device is found from times alone in slices', () => {
  const found = new Map(fullBatches(sets()).map(({ model, fullBatch }) => [model, fullBatch]));
  for (const [model, fullBatch] of Object.entries(models))
    expect((found.get(model) ?? 0) / fullBatch).toBeCloseTo(1, 1);
});

test('contention that follows the fill is learnt, and told of a model and a number that were left out', () => {
  const { sides, features } = standInSides({ sets: sets(), alone: [] });
  const model = fitStandIn(sides, features);
  const errors = sides.map((side) => Math.abs(Math.log(contentionOf(model, side) / side.own.contention)));
  expect(errors.reduce((sum, error) => sum + error, 0) / errors.length).toBeLessThan(0.1);
  const leftOut = standInErrors(sides, features);
  expect(leftOut).toHaveLength(6);
  for (const { log, constantLog } of leftOut) expect(log).toBeLessThan(constantLog / 2);
});
