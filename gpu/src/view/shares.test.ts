import { expect, test } from '@jest/globals';
import { readGpuAnnotation } from '@gpuwhisk/common/entities/gpu-annotation';
import { shareOf } from './shares.js';

test.each([
  [{}, { shareClass: 100, smRequest: 1, smLimit: 1 }],
  [{ mpsPercent: 25 }, { shareClass: 30, smRequest: 0.25, smLimit: 0.25 }],
  [
    { mpsPercent: 50, smLimit: 0.15 },
    { shareClass: 20, smRequest: 0.15, smLimit: 0.15 },
  ],
  [
    { smRequest: 0.1, smLimit: 0.7 },
    { shareClass: 70, smRequest: 0.1, smLimit: 0.7 },
  ],
  [{ sloMs: 100 }, { shareClass: 100, smRequest: 1, smLimit: 1, tokens: { violation: 0.2 } }],
  [{ smRequest: 0.1 }, { shareClass: 100, smRequest: 0.1, smLimit: 1 }],
])('annotation %j has share %j', (fields, share) => {
  const annotation = readGpuAnnotation({ memoryMiB: 512, ...fields });
  expect(shareOf({ ...annotation, timeoutMs: 1000 })).toEqual({ ...share, memoryMiB: 512 });
});

test.each([
  [{}, { shareClass: 30, smRequest: 0.3, smLimit: 0.3 }],
  [{ smRequest: 0.1 }, { shareClass: 30, smRequest: 0.1, smLimit: 0.3 }],
  [{ mpsPercent: 20 }, { shareClass: 20, smRequest: 0.2, smLimit: 0.2 }],
])('annotation %j of a namespace that may have 30 %% has share %j', (fields, share) => {
  const annotation = readGpuAnnotation({ memoryMiB: 512, ...fields });
  expect(shareOf({ ...annotation, timeoutMs: 1000, maxShareClass: 30 })).toEqual({ ...share, memoryMiB: 512 });
});
