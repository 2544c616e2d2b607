import { beforeEach, describe, expect, test } from '@jest/globals';
import type { UserLimits } from '@gpuwhisk/common/entities/identity';
import type { GuestAnswer } from '@gpuwhisk/invoker/containers/simulated-factory';
import { ActivationHarness, annotation, success, message } from './activation-harness.js';

let harness: ActivationHarness;

beforeEach(async () => {
  harness = await ActivationHarness.open();
});

describe('an activation', () => {
  test.each<[string, GuestAnswer, number, string]>([
    ['says error', { then: { do: 'result', value: { error: 'no' } } }, 1, 'no'],
    ['fails', { then: { do: 'error', error: 'it failed' } }, 2, 'it failed'],
    ['exits', { then: { do: 'exit' } }, 2, 'The action did not produce a valid response and exited unexpectedly.'],
    ['takes too much', { then: { do: 'exhaust' } }, 2, 'The action exhausted its memory and was aborted.'],
    ['never answers', { then: { do: 'hang' } }, 2, 'The action exceeded its time limits of 1000 milliseconds.'],
    [
      'says too much',
      { then: { do: 'result', value: { x: 'x'.repeat(300) } } },
      1,
      `The action produced a response that exceeded the allowed length: 308 > 200 bytes. The truncated response was: {"x":"${'x'.repeat(94)}`,
    ],
  ])('that %s is recorded so', async (what, answer, statusCode, error) => {
    harness.onRun = () => answer;
    const record = await harness.run();
    expect(record.response).toMatchObject({ statusCode, result: { error } });
    expect(annotation(record, 'timeout')).toBe(what === 'never answers');
    expect(record.logs.some((line) => line.includes('Log data might be missing'))).toBe(statusCode === 2);
    harness.onRun = () => success;
    const next = await harness.run({ activationId: 'b' });
    expect(harness.inits).toHaveLength(statusCode === 2 ? 2 : 1);
    // A container that answered can be unloaded.
    const start = what === 'fails' ? 'injected' : statusCode === 2 ? 'cold' : undefined;
    expect(annotation(next, 'start')).toBe(start);
  });

  test("says too much by its namespace's own limits, never by wider ones than the system's", async () => {
    harness.onRun = () => ({ then: { do: 'result', value: { x: 'x'.repeat(192) } } });
    const under = async (activationId: string, limits: UserLimits): Promise<unknown> =>
      (await harness.run({ activationId, user: { ...message.user, limits } })).response.result;
    const error = (maxBytes: number, keptBytes: number): object => ({
      error: `The action produced a response that exceeded the allowed length: 200 > ${maxBytes} bytes. The truncated response was: {"x":"${'x'.repeat(keptBytes - 6)}`,
    });
    expect(await under('a', { maxPayloadSize: '1 MB', truncationSize: '10 B' })).toEqual({ x: 'x'.repeat(192) });
    expect(await under('b', { maxPayloadSize: '50 B' })).toEqual(error(50, 100));
    expect(await under('c', { maxPayloadSize: '150 B', truncationSize: '10 B' })).toEqual(error(150, 10));
    expect(await under('d', { maxPayloadSize: '150 B', truncationSize: '1 KB' })).toEqual(error(150, 100));
  });

  test('that never answers leaves a container that can be unloaded, where that ends its runs', async () => {
    harness.endsLate = true;
    harness.onRun = () => ({ then: { do: 'hang' } });
    expect(annotation(await harness.run(), 'timeout')).toBe(true);
    harness.onRun = () => success;
    expect(annotation(await harness.run({ activationId: 'b' }), 'start')).toBe('injected');
  });

  test('that does not load is recorded so and never run', async () => {
    harness.onInit = () => ({ then: { do: 'hang' } });
    const record = await harness.run();
    expect(record.response).toMatchObject({
      statusCode: 2,
      result: { error: 'The action exceeded its time limits of 1000 milliseconds during initialization.' },
    });
    expect(annotation(record, 'initTime')).toBe(1000);
    expect(harness.runs).toEqual([]);
  });

  test('that a container turns away goes to another', async () => {
    harness.onRun = () => ({ then: { do: 'bye', value: {} } });
    await harness.run();
    harness.onRun = () => success;
    expect((await harness.run({ activationId: 'b' })).response.statusCode).toBe(0);
    expect(harness.inits).toHaveLength(2);
  });

  test('that the platform itself cut short is left to the next life', async () => {
    harness.onRun = () => ({ then: { do: 'hang' } });
    let recorded = false;
    void harness.submit({ blocking: true }).then(() => {
      recorded = true;
    });
    await harness.base.runFor(500);
    expect(harness.runs).toHaveLength(1);
    harness.closing = true;
    await harness.base.runUntil(harness.pool.close());
    await harness.base.runFor(5000);
    expect(recorded).toBe(false);
    expect(harness.acknowledged).toEqual([]);
  });
});
