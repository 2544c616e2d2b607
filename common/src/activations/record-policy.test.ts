import { expect, test } from '@jest/globals';
import type { ActivationStatusCode } from '../entities/activation.js';
import { isRecordKept } from './record-policy.js';
import type { RecordLevels } from './record-policy.js';

const codes: readonly ActivationStatusCode[] = [0, 1, 2, 3];
const call = { blocking: false, extraLogging: false, limits: {} };

test.each<[RecordLevels['storeBlockingResultLevel'], number[]]>([
  ['STORE_ALWAYS', [0, 1, 2, 3]],
  ['STORE_FAILURES', [1, 2, 3]],
  ['STORE_FAILURES_NOT_APPLICATION_ERRORS', [2, 3]],
])('%s keeps the records with status %j', (level, kept) => {
  const blockingOnly: RecordLevels = { storeBlockingResultLevel: level, storeNonBlockingResultLevel: 'STORE_ALWAYS' };
  const othersOnly: RecordLevels = { storeBlockingResultLevel: 'STORE_ALWAYS', storeNonBlockingResultLevel: level };
  const keptOf = (levels: RecordLevels, changes: Partial<typeof call>): number[] =>
    codes.filter((code) => isRecordKept(levels, { ...call, ...changes }, code));
  expect(keptOf(blockingOnly, { blocking: true })).toEqual(kept);
  expect(keptOf(blockingOnly, {})).toEqual([0, 1, 2, 3]);
  expect(keptOf(othersOnly, {})).toEqual(kept);
  expect(keptOf(othersOnly, { blocking: true })).toEqual([0, 1, 2, 3]);
  expect(keptOf(othersOnly, { extraLogging: true })).toEqual([0, 1, 2, 3]);
});

test('a namespace that stores no activations has none, whatever else is asked', () => {
  const levels: RecordLevels = {
    storeBlockingResultLevel: 'STORE_ALWAYS',
    storeNonBlockingResultLevel: 'STORE_ALWAYS',
  };
  const forbidding = { blocking: true, extraLogging: true, limits: { storeActivations: false } };
  expect(codes.filter((code) => isRecordKept(levels, forbidding, code))).toEqual([]);
});
