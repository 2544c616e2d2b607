import { expect, test } from '@jest/globals';
import type { AloneTimes } from '@gpuwhisk/common/gpu-observations';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import { activationRecord } from './activation-record.js';

/** Annotation `gpu` of a run of `ranMs`, after a load of 500 ms. */
function gpuOf(
  alone: AloneTimes | undefined,
  ranMs: number,
  figures: { besideMs?: number; inputSize?: number },
): unknown {
  const share = { shareClass: 100, smRequest: 1, smLimit: 1, memoryMiB: 1000 };
  const gpu = { invoker: 'invoker0', devices: ['GPU-1'], share, at: 0, epoch: 1, version: 1 };
  const message = {
    ...{ transid: ['t', 0], activationId: 'a', action: { path: 'p', name: 'n' }, user: { namespace: { name: 'p' } } },
    gpu: { ...gpu, predicted: { soloMs: 10, runMs: 10 }, ...(alone && { alone }) },
  } as unknown as ActivationMessage;
  const times = { startMs: 0, endMs: 500 + ranMs, waitMs: 0, initMs: 500, start: 'cold' as const, ...figures };
  const { annotations } = activationRecord(message, undefined, times, { statusCode: 0 }, false);
  return annotations.find(({ key }) => key === 'gpu')?.value;
}

test('what a run alone takes beyond its usual time is no degradation', () => {
  const told = gpuOf({ ms: 100 }, 800, { besideMs: 0 });
  expect(told).toMatchObject({ timesUsual: 8 });
  expect(told).not.toHaveProperty('degradation');
});

test('beside others it is, at most for the part of the run in which there were others', () => {
  const told = gpuOf({ ms: 100 }, 160, { besideMs: 160 });
  expect(told).toMatchObject({ degradation: 0.375 });
  expect(told).not.toHaveProperty('timesUsual');
  expect(gpuOf({ ms: 100 }, 800, { besideMs: 80 })).toMatchObject({ degradation: 0.1 });
  expect(gpuOf({ ms: 100 }, 90, { besideMs: 90 })).toMatchObject({ degradation: 0 });
});

test('nothing is compared without a time alone, or without knowing what else ran', () => {
  for (const told of [gpuOf(undefined, 800, { besideMs: 800 }), gpuOf({ ms: 100 }, 800, {})]) {
    expect(told).not.toHaveProperty('degradation');
    expect(told).not.toHaveProperty('timesUsual');
  }
});

test('a run whose function reports its size is compared with runs of that size', () => {
  const alone: AloneTimes = {
    ms: 100,
    reported: [
      [1, 100],
      [64, 800],
    ],
  };
  expect(gpuOf(alone, 800, { besideMs: 0, inputSize: 64 })).toMatchObject({ timesUsual: 1, inputSize: 64 });
  expect(gpuOf(alone, 800, { besideMs: 0, inputSize: 33 })).toMatchObject({ timesUsual: 1 });
  expect(gpuOf(alone, 800, { besideMs: 0, inputSize: 32 })).not.toHaveProperty('timesUsual');
});
