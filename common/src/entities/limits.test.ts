import { describe, expect, test } from '@jest/globals';
import { configSchema } from '../config-schema.js';
import {
  formatByteSize,
  parseByteSize,
  boundsFor,
  defaultLimits,
  gpuDefaultLimits,
  limitsProblem,
  readActionLimits,
  resultBoundsFor,
} from './limits.js';

const system = configSchema.parse({}).limits;

describe('bounds', () => {
  test("are the system's where a namespace has none", () => {
    expect(boundsFor(system, {})).toMatchObject({
      timeoutMs: { min: 100, max: 300_000, maxSetBy: 'setting: limits.maxTimeoutMs' },
      memoryMiB: { min: 128, max: 512, minSetBy: 'setting: limits.minMemoryMiB' },
      logsMiB: { min: 0, max: 10 },
      concurrency: { min: 1, max: 1 },
      maxInstances: 30,
      instancesSetBy: 'setting: limits.concurrentInvocations',
      maxParameters: { bytes: 1024 * 1024, setBy: 'setting: limits.maxParametersBytes' },
      maxPayload: { bytes: 1024 * 1024, setBy: 'setting: limits.maxPayloadBytes' },
    });
  });

  test("are a namespace's own, within the system's", () => {
    const own = {
      minActionMemory: 64,
      maxActionMemory: 256,
      minActionTimeout: 200,
      maxActionTimeout: 10_000_000,
      maxActionLogs: 5,
      maxActionConcurrency: 8,
      concurrentInvocations: 3,
      maxParameterSize: '2 KB',
      maxPayloadSize: '1 GB',
    };
    const [setting, limit] = ['setting: limits.', 'limit of the namespace: '];
    expect(boundsFor(system, own)).toEqual({
      timeoutMs: {
        ...{ min: 200, minSetBy: `${limit}minActionTimeout` },
        ...{ max: 300_000, maxSetBy: `${setting}maxTimeoutMs` },
      },
      memoryMiB: {
        ...{ min: 128, minSetBy: `${setting}minMemoryMiB` },
        ...{ max: 256, maxSetBy: `${limit}maxActionMemory` },
      },
      logsMiB: { ...{ min: 0, minSetBy: `${setting}minLogsMiB` }, ...{ max: 5, maxSetBy: `${limit}maxActionLogs` } },
      concurrency: {
        ...{ min: 1, minSetBy: `${setting}minConcurrency` },
        ...{ max: 1, maxSetBy: `${setting}maxConcurrency` },
      },
      maxInstances: 3,
      instancesSetBy: `${limit}concurrentInvocations`,
      maxParameters: { bytes: 2048, setBy: `${limit}maxParameterSize` },
      maxPayload: { bytes: 1024 * 1024, setBy: `${setting}maxPayloadBytes` },
    });
  });

  test('on results are those of payloads and of truncation', () => {
    const MiB = 1024 * 1024;
    expect(resultBoundsFor(system, {})).toEqual({ maxResultBytes: MiB, truncationBytes: MiB });
    const own = { maxPayloadSize: '2 KB', truncationSize: '2 MB' };
    expect(resultBoundsFor(system, own)).toEqual({ maxResultBytes: 2048, truncationBytes: MiB });
    expect(resultBoundsFor(system, { truncationSize: '1 KB' })).toEqual({ maxResultBytes: MiB, truncationBytes: 1024 });
  });

  test('hold at both ends', () => {
    const bounds = boundsFor(system, {});
    for (const memory of [128, 512]) expect(limitsProblem({ memory }, bounds)).toBeUndefined();
    expect(limitsProblem({ memory: 1, timeout: 1, logs: 99 }, bounds)).toContain('memory size 1 MB below');
    expect(limitsProblem({ timeout: 1, logs: 99 }, bounds)).toContain('duration 1 milliseconds below');
    expect(limitsProblem({}, bounds)).toBeUndefined();
  });
});

test('older documents have the defaults of what they lack', () => {
  expect(readActionLimits({ timeout: 1, memory: 2 })).toEqual({ timeout: 1, memory: 2, logs: 10, concurrency: 1 });
  expect(() => readActionLimits({ memory: 2 })).toThrow("'timeout' is missing");
  expect(() => readActionLimits({ timeout: 2 })).toThrow("'memory' is missing");
  expect(() => readActionLimits(undefined)).toThrow('JSON object expected');
});

test("new actions have the system's defaults", () => {
  expect(defaultLimits(system)).toEqual({ timeout: 60_000, memory: 256, logs: 10, concurrency: 1 });
});

test('new actions with a GPU have more time and memory, as far as their namespace may', () => {
  const usual = { logs: 10, concurrency: 1 };
  const roomy = boundsFor(system, {}, { maxMemoryMiB: 'gpuMaxMemoryMiB', maxTimeoutMs: 'gpuMaxTimeoutMs' });
  expect(limitsProblem({ timeout: 86_400_001 }, roomy)).toMatch(/\(setting: limits\.gpuMaxTimeoutMs\)$/);
  expect(gpuDefaultLimits(system, roomy)).toEqual({ ...usual, timeout: 300_000, memory: 2048 });
  const bounded = boundsFor({ ...system, maxMemoryMiB: 1024, maxTimeoutMs: 120_000 }, {});
  expect(gpuDefaultLimits(system, bounded)).toEqual({ ...usual, timeout: 120_000, memory: 1024 });
});

describe('sizes', () => {
  test.each([
    ['1 MB', 1048576],
    ['512KB', 524288],
    ['2 g', 2147483648],
    ['100 B', 100],
    ['3m', 3145728],
  ])('%s', (text, bytes) => {
    expect(parseByteSize(text)).toBe(bytes);
  });

  test.each(['', 'MB', '1', '1.5 MB', '-1 MB', '1 TB', '1  MB'])('%j is none', (text) => {
    expect(parseByteSize(text)).toBeUndefined();
  });

  test.each([
    [1048576, '1 MB'],
    [2048, '2 KB'],
    [1025, '1025 B'],
    [0, '0 B'],
    [3 * 2 ** 30, '3 GB'],
  ])('%d is written %s', (bytes, text) => {
    expect(formatByteSize(bytes)).toBe(text);
    expect(parseByteSize(text)).toBe(bytes);
  });
});
