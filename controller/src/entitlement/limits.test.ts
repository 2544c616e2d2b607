import { expect, test } from '@jest/globals';
import { readGpuAnnotation } from '@gpuwhisk/common/entities/gpu-annotation';
import type { GpuNeed } from '@gpuwhisk/common/gpu';
import type { JsonObject } from '@gpuwhisk/common/json';
import { withinShare } from './limits.js';

const need = (fields: JsonObject): GpuNeed => ({
  ...readGpuAnnotation({ memoryMiB: 512, ...fields }),
  timeoutMs: 1000,
});

test.each([
  [{}, undefined, undefined],
  [{ mpsPercent: 100 }, 100, undefined],
  [{}, 50, 50],
  [{}, 69, 50],
  [{ mpsPercent: 50 }, 50, 50],
  [{ mpsPercent: 100, smLimit: 0.5 }, 50, 50],
  [{ smRequest: 0.5 }, 50, 50],
  // A document that was stored without a check.
  [{}, 3, 10],
  [{}, 300, undefined],
])('annotation %j with a limit of %s gets class %s at most', (fields, percent, maxShareClass) => {
  expect(withinShare(need(fields), percent).maxShareClass).toBe(maxShareClass);
});

test.each([
  [{ mpsPercent: 70 }, 69, 70],
  [{ mpsPercent: 60 }, 60, 70],
  [{ smLimit: 0.51 }, 50, 70],
  [{ smRequest: 0.51 }, 50, 51],
])('annotation %j with a limit of %s is refused: it asks for %s', (fields, percent, asked) => {
  expect(() => withinShare(need(fields), percent)).toThrow(
    expect.objectContaining({
      status: 429,
      message: `Too large a share of a GPU requested (requested: ${asked}, allowed: ${percent}, limit: maxGpuShare).`,
    }),
  );
});
