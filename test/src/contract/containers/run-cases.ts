import { describe, expect, test } from '@jest/globals';
import { initRequest, limits } from '../container-calls.js';
import { run, textOf } from './cases.js';
import type { ContainerCases } from './cases.js';

/** Cases for answers to runs, unloads and checks. */
export function runCases(cases: ContainerCases): void {
  const { using, unless, skips } = cases;
  describe('runs', () => {
    test('answers with the result and its length', () =>
      using(async (container) => {
        expect(await run(container, { a: 'é' }).outcome).toEqual({ type: 'result', result: { a: 'é' }, bytes: 10 });
      }));

    test('runs again and again', () =>
      using(async (container) => {
        for (let i = 0; i < 50; i++) {
          const call = run(container, { i });
          expect(await call.outcome).toMatchObject({ type: 'result', result: { i } });
          expect(await call.logs).toEqual([]);
        }
      }));

    test('tells how long its runs took', () =>
      using(async (container) => {
        expect(container.busyMs).toBe(0);
        await run(container, { do: 'sleep', ms: 100 }).logs;
        await run(container, { do: 'sleep', ms: 200 }).logs;
        expect(container.busyMs).toBeGreaterThan(290);
        expect(container.busyMs).toBeLessThan(5000);
      }));

    test('reports an error with its message', () =>
      using(async (container) => {
        const outcome = await run(container, { do: 'error', error: 'no luck' }).outcome;
        expect(outcome).toMatchObject({ type: 'error', error: 'no luck' });
      }));

    test('reports a string as an error without a message', () =>
      using(async (container) => {
        expect(await run(container, { do: 'string' }).outcome).toEqual({ type: 'error', body: '"text"' });
      }));

    test('keeps the head of a result that is too long, and lives on', () =>
      using(async (container) => {
        const bytes = 3 * 1024 * 1024;
        for (const truncationBytes of [100, 1000, 2000]) {
          const outcome = await run(container, { do: 'big', bytes }, { maxResultBytes: 1000, truncationBytes }).outcome;
          const head = `{"a":"${'x'.repeat(truncationBytes - 6)}`;
          expect(outcome).toEqual({ type: 'oversize', bytes, head });
        }
        const whole = await run(container, { do: 'big', bytes: 1500 }, { maxResultBytes: 1000 }).outcome;
        expect(whole).toEqual({ type: 'oversize', bytes: 1500, head: `{"a":"${'x'.repeat(1492)}"}` });
        expect(await run(container, { b: 1 }).outcome).toMatchObject({ type: 'result', result: { b: 1 } });
      }));

    test('accepts a result of exactly the limit', () =>
      using(async (container) => {
        const outcome = await run(container, { do: 'big', bytes: 1000 }, { maxResultBytes: 1000 }).outcome;
        expect(outcome).toMatchObject({ type: 'result', bytes: 1000 });
      }));

    test('ends a run at its time-out', () =>
      using(async (container) => {
        const beganMs = performance.now();
        const call = run(container, { do: 'hang' }, { timeoutMs: 200 });
        expect(await call.outcome).toEqual({ type: 'timeout' });
        const tookMs = performance.now() - beganMs;
        expect(tookMs).toBeGreaterThan(195);
        expect(tookMs).toBeLessThan(400);
        expect(await call.logs).toEqual([]);
      }));

    test('takes another action once it has unloaded one', () =>
      using(async (container) => {
        expect(container.canUnload).toBe(true);
        for (const thorough of [false, true]) {
          expect(await run(container, { a: 1 }).outcome).toMatchObject({ type: 'result' });
          const call = container.unload(thorough, limits);
          expect(await call.outcome).toEqual({ type: 'ok' });
          expect(await call.logs).toEqual([]);
          expect(await container.init(initRequest(), limits).outcome).toMatchObject({ type: 'ok' });
        }
        expect(await run(container, { b: 2 }).outcome).toMatchObject({ type: 'result', result: { b: 2 } });
      }));

    unless(skips.frames, 'says what an unload could not put back', () =>
      using(async (container) => {
        await run(container, { do: 'spoil' }).logs;
        const { outcome } = container.unload(false, limits);
        expect(await outcome).toMatchObject({ type: 'error', error: 'The action left behind: threads.' });
        await expect(container.init(initRequest(), limits).outcome).rejects.toThrow('more than once');
      }),
    );

    test('says that it is in order, before and after a run, and keeps what was printed', () =>
      using(async (container) => {
        for (let round = 0; round < 2; round++) {
          const call = container.check(limits);
          expect(await call.outcome).toEqual({ type: 'ok' });
          expect(await call.logs).toEqual([]);
          expect(await run(container, { a: 1 }).outcome).toMatchObject({ type: 'result' });
        }
        expect(await container.unload(false, limits).outcome).toEqual({ type: 'ok' });
        const check = container.check(limits);
        expect(await container.init(initRequest('print'), limits).outcome).toMatchObject({ type: 'ok' });
        expect(await check.outcome).toEqual({ type: 'ok' });
        expect(await container.check(limits).outcome).toEqual({ type: 'ok' });
        const call = run(container, {});
        await call.outcome;
        expect((await call.logs).map(textOf)).toEqual(['from init']);
      }));

    unless(skips.frames, 'says what a check found, or that it does not answer', () =>
      using(async (container) => {
        await run(container, { do: 'spoil' }).logs;
        expect(await container.check(limits).outcome).toMatchObject({ type: 'error', error: 'It is spoilt.' });
        await run(container, { do: 'deafen' }).logs;
        const call = container.check({ ...limits, timeoutMs: 100 });
        expect(await call.outcome).toEqual({ type: 'timeout' });
        expect(await call.logs).toEqual([]);
      }),
    );

    test('says unavailable after bye', () =>
      using(async (container) => {
        expect(await run(container, { do: 'bye' }).outcome).toMatchObject({ type: 'result' });
        await Promise.race([container.exited, new Promise((done) => setTimeout(done, 50))]);
        expect(await run(container, {}).outcome).toEqual({ type: 'unavailable' });
      }));

    test('runs several at once where the spec allows it', () =>
      using(
        async (container) => {
          const calls = [300, 200, 100].map((ms) => run(container, { do: 'sleep', ms }));
          const order: number[] = [];
          await Promise.all(calls.map((call, index) => call.outcome.then(() => order.push(index))));
          expect(order).toEqual([2, 1, 0]);
          for (const call of calls) expect(await call.logs).toEqual([]);
        },
        { concurrency: 4 },
      ));
  });
}
