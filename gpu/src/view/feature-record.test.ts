import { expect, test } from '@jest/globals';
import { recordOf, workloadOf } from '../predict/slowdown-predictor.js';

test('what was measured counts before what the owner declares, and unknown names stay', () => {
  const declared = { smUtil: 0.9, l2Util: 0.4, layers: 50 };
  expect(recordOf({ smUtil: 0.5, dramUtil: 0.2 }, declared)).toEqual({
    ...{ smUtil: 0.5, dramUtil: 0.2, l2Util: 0.4, layers: 50 },
  });
  expect([recordOf(undefined, declared), recordOf(undefined, undefined)]).toEqual([declared, undefined]);
});

test('a workload has the figures that were told, and no others', () => {
  expect(workloadOf({ smUtil: 0.5, dramUtil: 0.2, layers: 50 })).toEqual({ smUtil: 0.5, dramUtil: 0.2 });
  expect(workloadOf({ smUtil: 0.5, l2Util: 0 })).toEqual({ smUtil: 0.5, l2Util: 0 });
});

test.each([[undefined], [{}], [{ dramUtil: 0.2, layers: 50 }], [{ smUtil: 0 }]])(
  'there is none where nothing tells what it fills: %j',
  (record) => expect(workloadOf(record)).toBeUndefined(),
);

test('it is the same object for the same record, as predictions are remembered by it', () => {
  const record = { smUtil: 0.5 };
  expect(workloadOf(record)).toBe(workloadOf(record));
});
