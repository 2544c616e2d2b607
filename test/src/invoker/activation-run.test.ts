import { beforeEach, describe, expect, test } from '@jest/globals';
import { readActivation } from '@gpuwhisk/common/entities/activation';
import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { RunnableAction } from '@gpuwhisk/invoker/activation/action-loader';
import type { GuestAnswer } from '@gpuwhisk/invoker/containers/simulated-factory';
import { ActivationHarness, action, annotation } from './activation-harness.js';

let harness: ActivationHarness;

beforeEach(async () => {
  harness = await ActivationHarness.open();
});

describe('an activation', () => {
  test('is recorded with what it answered, where and how long it ran', async () => {
    harness.onInit = () => ({ afterMs: 30, then: { do: 'result', value: {} } });
    harness.onRun = () => ({ afterMs: 50, stdout: ['hello'], then: { do: 'result', value: { greeting: 'Hello' } } });
    const record = await harness.run();
    expect(record).toMatchObject({
      namespace: 'caller',
      name: 'hello',
      version: '0.0.7',
      subject: 'guest',
      duration: 80,
      response: { statusCode: 0, result: { greeting: 'Hello' } },
    });
    expect(annotation(record, 'path')).toBe('guest/package/hello');
    expect(annotation(record, 'initTime')).toBe(30);
    expect(annotation(record, 'start')).toBe('cold');
    expect(annotation(record, 'waitTime')).toBe(100);
    expect(annotation(record, 'timeout')).toBe(false);
  });

  test('does not begin while the cluster may have given its invoker up', async () => {
    harness.mayBegin = false;
    const stored = harness.submit();
    await harness.base.runUntil(sleep(harness.clock, 10_000));
    expect([harness.inits.length, harness.runs.length]).toEqual([0, 0]);
    harness.mayBegin = true;
    await harness.base.runUntil(stored);
    expect(harness.runs).toHaveLength(1);
  });

  test('in a warm container has no initTime', async () => {
    await harness.run();
    const record = await harness.run({ activationId: 'b' });
    expect(annotation(record, 'initTime')).toBeUndefined();
    expect(annotation(record, 'start')).toBeUndefined();
    expect(harness.inits).toHaveLength(1);
  });

  test('with a place on a GPU is recorded with it', async () => {
    const share = { shareClass: 30, smRequest: 0.2, smLimit: 0.25, memoryMiB: 512 } as const;
    const place = { invoker: 'invoker0', devices: ['GPU-0'], slice: 'MIG-1', share, simulated: true };
    harness.onRun = () => ({ afterMs: 70, then: { do: 'result', value: {} } });
    const placed = (activationId: string): Promise<WhiskActivation> =>
      harness.run({ activationId, gpu: { ...place, at: harness.clock.now() + 40, epoch: 1, version: 1 } });
    const cold = await placed('b');
    const known = { device: 'GPU-0', slice: 'MIG-1', share: 0.3, queueMs: 40, simulated: true };
    expect(annotation(cold, 'gpu')).toEqual({ ...known, actualMs: cold.duration, start: 'cold' });
    expect(annotation(await placed('c'), 'gpu')).toEqual({ ...known, actualMs: 70, start: 'warm' });
    expect(annotation(await harness.run(), 'gpu')).toBeUndefined();
  });

  test('a sample ends when it takes longer than it may, its code’s loading aside, and is marked as one', async () => {
    harness.onInit = () => ({ afterMs: 200, then: { do: 'result', value: {} } });
    harness.onRun = () => ({ afterMs: 90, then: { do: 'result', value: {} } });
    const quick = await harness.run({ activationId: 'b', sample: { maxMs: 100 } });
    expect([quick.response.statusCode, annotation(quick, 'sample')]).toEqual([0, true]);
    const late = await harness.run({ activationId: 'c', sample: { maxMs: 50 } });
    expect([late.duration, annotation(late, 'timeout')]).toEqual([50, true]);
    expect(JSON.stringify(late.response.result)).toContain('50 milliseconds');
    expect(annotation(await harness.run({ activationId: 'd' }), 'sample')).toBeUndefined();
  });

  test('runs together with others as one, and each has its own result, error and record', async () => {
    const share = { shareClass: 30, smRequest: 0.2, smLimit: 0.25, memoryMiB: 512 } as const;
    const gpu = { invoker: 'invoker0', devices: ['GPU-0'], share, at: harness.clock.now(), epoch: 1, version: 1 };
    const gpuNeed = {
      memoryMiB: 512,
      class: 'inference',
      batch: 4,
      gpus: 1,
      isolation: 'namespace',
      timeoutMs: 1000,
    } as const;
    harness.onRun = () => {
      const value: JsonValue[] = [{ n: 1 }, { error: 'not this one' }, 'The action did not return a dictionary.'];
      return { afterMs: 20, stdout: ['together'], then: { do: 'result', value } };
    };
    const ids = ['one', 'two', 'three'];
    const together = ids.map((activationId, n) => harness.submit({ activationId, gpu, gpuNeed, content: { n } }));
    await harness.base.runUntil(Promise.all(together));
    const recorded = (id: string): Promise<WhiskActivation> =>
      harness.base
        .runUntil(harness.store.get('activations', `caller/${id}`))
        .then((document) => readActivation(document));
    const [one, two, three] = await Promise.all(ids.map(recorded));
    expect(harness.runs.map(({ value, batch }) => ({ value, batch }))).toEqual([
      { value: [{ n: 0 }, { n: 1 }, { n: 2 }], batch: '3' },
    ]);
    expect(one?.response).toMatchObject({ statusCode: 0, result: { n: 1 } });
    expect(two?.response).toMatchObject({ statusCode: 1, result: { error: 'not this one' } });
    expect(three?.response).toMatchObject({ statusCode: 2 });
    const line = expect.stringContaining('together');
    for (const record of [one, two]) expect(record?.logs).toEqual([line]);
    expect(three?.logs).toEqual([line, expect.stringContaining('Log data might be missing.')]);
    expect([one, two, three].map((record) => record && annotation(record, 'gpu'))).toMatchObject([
      { batch: 3, start: 'cold' },
      { batch: 3, start: 'warm' },
      { batch: 3, start: 'warm' },
    ]);
    expect([one, two, three].map((record) => record && annotation(record, 'initTime') !== undefined)).toEqual([
      true,
      false,
      false,
    ]);
  });

  test.each([
    ['errors', { do: 'result', value: [{ error: 'no' }, { error: 'no' }, { error: 'no' }] }],
    ['no answer in time', { do: 'hang' }],
    ['exhausted memory', { do: 'exhaust' }],
  ] as [string, GuestAnswer['then']][])(
    'of a batch with %s for all runs alone if it may be repeated',
    async (_, fails) => {
      const share = { shareClass: 30, smRequest: 0.2, smLimit: 0.25, memoryMiB: 512 } as const;
      const gpu = { invoker: 'invoker0', devices: ['GPU-0'], share, at: harness.clock.now(), epoch: 1, version: 1 };
      const known = { memoryMiB: 512, class: 'inference', batch: 4, gpus: 1, isolation: 'namespace' } as const;
      harness.onRun = ({ value }) => {
        const isBad = Array.isArray(value) || (value as JsonObject).n === 1;
        const one: GuestAnswer['then'] = fails.do === 'result' ? { do: 'result', value: { error: 'no' } } : fails;
        if (!isBad) return { afterMs: 20, then: { do: 'result', value } };
        return { afterMs: 20, then: Array.isArray(value) ? fails : one };
      };
      const run = async (of: RunnableAction): Promise<number[]> => {
        harness.runs.length = 0;
        const ids = [0, 1, 2].map((n) => `${String(of === action)}${n}`);
        const gpuNeed = { ...known, timeoutMs: 1000 };
        const placed = { ...gpu, together: { of: ids[0] ?? '', requests: 3 } };
        const stored = ids.map((activationId, n) =>
          harness.submit({ activationId, gpu: placed, gpuNeed, content: { n } }, of),
        );
        await harness.base.runUntil(Promise.all(stored));
        const records = ids.map((id) => harness.base.runUntil(harness.store.get('activations', `caller/${id}`)));
        return (await Promise.all(records)).map((one) => Number(readActivation(one).response.statusCode > 0));
      };
      const idempotent = { ...action, annotations: [{ key: 'idempotent', value: true }] };
      expect(await run(idempotent)).toEqual([0, 1, 0]);
      expect(harness.runs.map(({ batch = '1' }) => batch)).toEqual(['3', '1', '1', '1']);
      expect(await run(action)).toEqual([1, 1, 1]);
      expect(harness.runs.map(({ batch }) => batch)).toEqual(['3']);
    },
  );

  test('of a batch gets no longer text than a result may be, whatever the runtime answers', async () => {
    const share = { shareClass: 30, smRequest: 0.2, smLimit: 0.25, memoryMiB: 512 } as const;
    const gpu = { invoker: 'invoker0', devices: ['GPU-0'], share, at: harness.clock.now(), epoch: 1, version: 1 };
    const gpuNeed = {
      memoryMiB: 512,
      class: 'inference',
      batch: 8,
      gpus: 1,
      isolation: 'namespace',
      timeoutMs: 1000,
    } as const;
    const responsesTo = async (value: JsonValue): Promise<WhiskActivation['response'][]> => {
      harness.onRun = () => ({ afterMs: 20, then: { do: 'result', value } });
      const ids = [0, 1, 2, 3].map((n) => `${JSON.stringify(value).length}-${n}`);
      const together = ids.map((activationId) => harness.submit({ activationId, gpu, gpuNeed }));
      await harness.base.runUntil(Promise.all(together));
      return Promise.all(
        ids.map((id) =>
          harness.base
            .runUntil(harness.store.get('activations', `caller/${id}`))
            .then((document) => readActivation(document).response),
        ),
      );
    };
    const cut = (bytes: number, head: string): object => ({
      statusCode: 1,
      result: {
        error: `The action produced a response that exceeded the allowed length: ${bytes} > 200 bytes. The truncated response was: ${head}`,
      },
    });
    const long = 'é'.repeat(5000);
    const each = await responsesTo([long, { text: 'x'.repeat(300) }, 7, 'short']);
    expect(each).toMatchObject([
      cut(10_000, 'é'.repeat(50)),
      cut(311, `{"text":"${'x'.repeat(91)}`),
      { statusCode: 2, result: { error: 'The action did not return a dictionary or array.' } },
      { statusCode: 2, result: { error: 'short' } },
    ]);
    for (const response of await responsesTo(long)) expect(response).toMatchObject(cut(10_002, `"${'é'.repeat(49)}`));
  });

  test('its duration is what passed, whatever the wall clock did', async () => {
    harness.onRun = () => {
      harness.clock.stepWall(-3_600_000);
      return { afterMs: 70, then: { do: 'result', value: {} } };
    };
    const record = await harness.run();
    expect(record.duration).toBe(70);
    expect(record.end - record.start).toBe(70);
  });

  test('its duration leaves out the wait for its start mark and its code', async () => {
    harness.markSyncMs = 40;
    const slow = {
      ...action,
      code: () => new Promise<never>((_, no) => harness.clock.setTimer(500, () => no(new Error()))),
    };
    expect((await harness.run({}, slow)).duration).toBe(0);
    const code = (): ReturnType<RunnableAction['code']> =>
      new Promise((resolve) => harness.clock.setTimer(500, () => resolve({ code: '', binary: false })));
    const record = await harness.run({ activationId: 'b', action: { path: 'guest', name: 'b' } }, { ...action, code });
    expect(record.duration).toBe(0);
    expect(annotation(record, 'waitTime')).toBe(640);
  });

  test('reaches its code only once its start mark is durable, unless somebody waits for it', async () => {
    await harness.run();
    harness.markSyncMs = 500;
    void harness.submit({ activationId: 'b' });
    await harness.base.runFor(499);
    expect(harness.runs.map((request) => request.activation_id)).toEqual(['a']);
    await harness.base.runFor(2);
    expect(harness.runs.map((request) => request.activation_id)).toEqual(['a', 'b']);
    void harness.submit({ activationId: 'c', blocking: true });
    await harness.base.runFor(1);
    expect(harness.runs.map((request) => request.activation_id)).toEqual(['a', 'b', 'c']);
  });

  test('somebody waits for is acknowledged with the record before it is stored, its logs left out', async () => {
    harness.onRun = () => ({ afterMs: 20, stdout: ['hello'], then: { do: 'result', value: { ok: 1 } } });
    harness.recordMs = 10;
    const stored = harness.submit({ blocking: true });
    await harness.base.runFor(125);
    const whole = { response: { activationId: 'a', logs: [] }, isSystemError: false, instance: { instance: 0 } };
    expect(harness.acknowledged).toMatchObject([whole]);
    expect(await harness.base.runUntil(harness.store.list('activations', { limit: 1 }))).toEqual([]);
    await harness.base.runUntil(stored);
    expect(harness.acknowledged).toHaveLength(1);
  });

  test('somebody waits for is acknowledged before its logs are there, and frees its slot once they are', async () => {
    harness.onRun = () => ({ stdout: ['hello'], logsAfterMs: 500, then: { do: 'result', value: { ok: 1 } } });
    const stored = harness.submit({ blocking: true });
    await harness.base.runFor(400);
    expect(harness.acknowledged).toMatchObject([{ response: { activationId: 'a', logs: [] } }]);
    expect(harness.acknowledged[0]).not.toHaveProperty('instance');
    await harness.base.runUntil(stored);
    expect(harness.acknowledged).toHaveLength(2);
    expect(harness.acknowledged[1]).toMatchObject({ activationId: 'a', isSystemError: false });
    expect(harness.acknowledged[1]).not.toHaveProperty('response');
  });

  test('somebody waits for is acknowledged once it is stored, where the store lags behind', async () => {
    await harness.run();
    harness.recordMs = 500;
    const stored: string[] = [];
    const first = harness.submit({ activationId: 'b', blocking: true }).then(() => stored.push('b'));
    await harness.base.runFor(100);
    const answered = (): unknown[] => harness.acknowledged.filter((sent) => 'response' in sent);
    expect(answered()).toHaveLength(1);
    const second = harness.submit({ activationId: 'c', blocking: true }).then(() => stored.push('c'));
    await harness.base.runFor(200);
    expect(harness.runs).toHaveLength(3);
    expect(answered()).toHaveLength(1);
    await harness.base.runUntil(Promise.all([first, second]));
    await harness.base.runFor(10);
    expect(stored).toEqual(['b', 'c']);
    expect(answered()).toMatchObject([{ response: { activationId: 'b' } }, { response: { activationId: 'c' } }]);
  });
});
