import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { JsonObject } from '@gpuwhisk/common/json';
import type {
  Call,
  CallLimits,
  Container,
  ContainerFactory,
  ContainerSpec,
  Outcome,
} from '@gpuwhisk/invoker/containers/container-factory';
import { initRequest, kind, limits, runRequest, spec } from './container-calls.js';

/** A factory to hold to the contract, whose kind `test:1` behaves as guest-program.ts says. */
export interface FactoryUnderTest {
  factory: ContainerFactory;
  close(): Promise<void>;
}

/** Cases that a factory cannot have, with the reason. */
export type Skips = Partial<Record<'processes' | 'frames' | 'memory', string>>;

/** The text of a log line, without its prefix; checks the prefix. */
export function textOf(line: string): string {
  expect(line).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z (stdout|stderr): /);
  return line.slice('2026-01-01T00:00:00.000000000Z stdout: '.length);
}

/** A container of `factory` that ran `/init`. */
export async function initialized(factory: ContainerFactory, wanted: Partial<ContainerSpec> = {}): Promise<Container> {
  const container = await factory.create({ ...spec, ...wanted });
  const outcome = await container.init(initRequest(), limits).outcome;
  expect(outcome).toEqual({ type: 'ok' });
  return container;
}

/** Runs `value` with the usual limits, changed by `changed`. */
export function run(container: Container, value: JsonObject, changed: Partial<CallLimits> = {}): Call {
  return container.run(runRequest(value), { ...limits, ...changed });
}

/** Registers the cases that every ContainerFactory passes. */
export function containerFactoryContract(name: string, open: () => Promise<FactoryUnderTest>, skips: Skips = {}): void {
  describe(`${name}: the ContainerFactory contract`, () => {
    let opened: FactoryUnderTest;
    let factory: ContainerFactory;
    beforeAll(async () => {
      opened = await open();
      factory = opened.factory;
    });
    afterAll(() => opened.close());

    const unless = (reason: string | undefined, title: string, body: () => Promise<void>): void => {
      if (reason === undefined) test(title, body);
      else test.skip(`${title} (skipped: ${reason})`, body);
    };

    /** A fresh initialized container, destroyed afterwards. */
    const using = async (use: (container: Container) => Promise<void>, wanted: Partial<ContainerSpec> = {}) => {
      const container = await initialized(factory, wanted);
      try {
        await use(container);
      } finally {
        await container.destroy();
      }
    };

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
            const outcome = await run(container, { do: 'big', bytes }, { maxResultBytes: 1000, truncationBytes })
              .outcome;
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
            expect(await container.init(initRequest(), limits).outcome).toEqual({ type: 'ok' });
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
          expect(await container.init(initRequest('print'), limits).outcome).toEqual({ type: 'ok' });
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

    describe('logs', () => {
      test('come in order with their stream, the last line with or without newline', () =>
        using(async (container) => {
          const call = run(container, {
            do: 'log',
            texts: [
              [1, 'one\ntwo\n'],
              [1, 'thr'],
              [1, 'ee é'],
            ],
          });
          await call.outcome;
          expect((await call.logs).map(textOf)).toEqual(['one', 'two', 'three é']);
          const next = run(container, { do: 'log', texts: [[2, 'oh\n']] });
          await next.outcome;
          const lines = await next.logs;
          expect(lines.map(textOf)).toEqual(['oh']);
          expect(lines[0]).toContain(' stderr: ');
        }));

      test('of a successful init come with the first run', async () => {
        const container = await factory.create(spec);
        const init = container.init(initRequest('print'), limits);
        expect(await init.outcome).toEqual({ type: 'ok' });
        expect(await init.logs).toEqual([]);
        const call = run(container, {});
        await call.outcome;
        expect((await call.logs).map(textOf)).toEqual(['from init']);
        await container.destroy();
      });

      test('are cut at the limit, with a notice', () =>
        using(async (container) => {
          const call = run(container, { do: 'print', bytes: 100_000, line: 'x'.repeat(9) }, { logLimitBytes: 1000 });
          expect(await call.outcome).toMatchObject({ type: 'result' });
          const lines = await call.logs;
          const last = lines.at(-1) ?? '';
          expect(textOf(last)).toBe(
            'Logs were truncated because the total bytes size exceeds the limit of 1000 bytes.',
          );
          expect(lines.slice(0, -1).join('\n').length).toBeLessThanOrEqual(1000);
          expect(lines.length).toBeGreaterThan(10);
          const next = run(container, { do: 'log', texts: [[1, 'after\n']] });
          await next.outcome;
          expect((await next.logs).map(textOf)).toEqual(['after']);
        }));

      test('are not collected with a limit of 0', () =>
        using(async (container) => {
          const call = run(container, { do: 'log', texts: [[1, 'one\n']] }, { logLimitBytes: 0 });
          await call.outcome;
          expect(await call.logs).toEqual([]);
        }));

      unless(skips.processes, 'of 100 MB neither block the program nor fill the memory', () =>
        using(async (container) => {
          const beforeBytes = process.memoryUsage().rss;
          const call = run(container, { do: 'print', bytes: 100 * 1024 * 1024 });
          expect(await call.outcome).toMatchObject({ type: 'result' });
          expect((await call.logs).length).toBeLessThan(20_000);
          expect(process.memoryUsage().rss - beforeBytes).toBeLessThan(64 * 1024 * 1024);
        }),
      );
    });

    describe('ends', () => {
      for (const doing of ['exit', 'crash']) {
        test(`loses a run whose program does ${doing}`, () =>
          using(async (container) => {
            const call = run(container, { do: doing });
            expect(await call.outcome).toEqual({ type: 'lost', oomKilled: false });
            await container.exited;
            if (doing === 'exit') expect((await call.logs).map(textOf)).toEqual(['going']);
            expect(await run(container, {}).outcome).toEqual({ type: 'lost', oomKilled: false });
          }));
      }

      unless(skips.memory, 'kills what exhausts its memory, and says so', () =>
        using(
          async (container) => {
            expect(await run(container, { do: 'exhaust' }).outcome).toEqual({ type: 'lost', oomKilled: true });
            await container.exited;
          },
          { memoryMiB: 128 },
        ),
      );

      for (const doing of ['unknown-type', 'unasked', 'huge-frame']) {
        unless(skips.frames, `kills a runtime that breaks the protocol: ${doing}`, () =>
          using(async (container) => {
            expect(await run(container, { do: doing }).outcome).toEqual({ type: 'lost', oomKilled: false });
            await container.exited;
          }),
        );
      }

      unless(skips.frames, 'takes frames byte by byte', () =>
        using(async (container) => {
          expect(await run(container, { do: 'split' }).outcome).toMatchObject({ result: { a: 'é'.repeat(10) } });
        }),
      );

      unless(skips.frames, 'waits two seconds for the log frame', () =>
        using(async (container) => {
          const call = run(container, { do: 'no-log-frame' });
          expect(await call.outcome).toMatchObject({ type: 'result' });
          expect(await call.logs).toEqual([]);
          expect(await run(container, { c: 1 }).outcome).toMatchObject({ type: 'result' });
        }),
      );

      for (const [code, outcome] of [
        ['fail', { type: 'error', error: 'it does not load' }],
        ['exit', { type: 'lost', oomKilled: false }],
        ['hang', { type: 'timeout' }],
      ] as const) {
        test(`reports an init that does ${code}`, async () => {
          const container = await factory.create(spec);
          const call = container.init(initRequest(code), { ...limits, timeoutMs: code === 'hang' ? 100 : 20_000 });
          expect(await call.outcome).toMatchObject(outcome);
          expect(await call.logs).toEqual([]);
          await container.destroy();
        });
      }

      unless(skips.processes, 'outlives a program that forks to the limit, and others do not notice', async () => {
        const [hostile, other] = await Promise.all([initialized(factory, { memoryMiB: 1024 }), initialized(factory)]);
        const script = `let failed = 0; for (let i = 0; i < 1100; i++) {
          await new Promise((done) => { const child = spawn('/bin/sleep', ['60']); child.on('spawn', done);
            child.on('error', () => { failed++; done(); }); }); if (failed > 0) break; } return failed;`;
        const call = run(hostile, { do: 'script', script });
        expect(await run(other, { fine: true }).outcome).toMatchObject({ type: 'result', result: { fine: true } });
        const outcome = await call.outcome;
        expect(outcome).toMatchObject({ type: 'result' });
        const another = await initialized(factory);
        expect(await run(another, { fine: 2 }).outcome).toMatchObject({ result: { fine: 2 } });
        await Promise.all([hostile, other, another].map((container) => container.destroy()));
      });
    });

    describe('states', () => {
      type Action = (container: Container) => Promise<unknown>;
      const actions: Record<string, Action> = {
        init: (container) => container.init(initRequest(), limits).outcome,
        run: (container) => run(container, { x: 1 }).outcome,
        unload: (container) => container.unload(false, limits).outcome,
        check: (container) => container.check(limits).outcome,
        pause: (container) => container.pause(),
        resume: (container) => container.resume(),
        destroy: (container) => container.destroy(),
      };
      const ok = { type: 'ok' };
      const result: Partial<Outcome> = { type: 'result' };
      const lost = { type: 'lost', oomKilled: false };
      const states: Record<string, { reach: Action; expected: Record<string, object | string | undefined> }> = {
        created: {
          reach: () => Promise.resolve(),
          expected: {
            init: ok,
            run: result,
            unload: ok,
            check: ok,
            pause: undefined,
            resume: undefined,
            destroy: undefined,
          },
        },
        initialized: {
          reach: (container) => container.init(initRequest(), limits).outcome,
          expected: {
            init: 'more than once',
            run: result,
            unload: ok,
            check: ok,
            pause: undefined,
            resume: undefined,
            destroy: undefined,
          },
        },
        busy: {
          reach: (container) => {
            run(container, { do: 'sleep', ms: 30_000 }).outcome.catch(() => undefined);
            return Promise.resolve();
          },
          expected: {
            init: 'all it may run',
            run: 'all it may run',
            unload: 'while it runs',
            check: 'while it runs',
            pause: 'while it runs',
            resume: undefined,
            destroy: undefined,
          },
        },
        paused: {
          reach: (container) => container.pause(),
          expected: {
            init: 'is paused',
            run: 'is paused',
            unload: 'is paused',
            check: 'is paused',
            pause: undefined,
            resume: undefined,
            destroy: undefined,
          },
        },
        resumed: {
          reach: async (container) => {
            await container.pause();
            await container.resume();
          },
          expected: {
            init: ok,
            run: result,
            unload: ok,
            check: ok,
            pause: undefined,
            resume: undefined,
            destroy: undefined,
          },
        },
        destroyed: {
          reach: (container) => container.destroy(),
          expected: {
            init: lost,
            run: lost,
            unload: lost,
            check: lost,
            pause: undefined,
            resume: undefined,
            destroy: undefined,
          },
        },
      };
      for (const [state, { reach, expected }] of Object.entries(states)) {
        for (const [method, act] of Object.entries(actions)) {
          const wanted = expected[method];
          test(`${method} of a container that is ${state}`, async () => {
            const container = await factory.create(spec);
            try {
              await reach(container);
              if (typeof wanted === 'string') await expect(act(container)).rejects.toThrow(wanted);
              else if (wanted === undefined) await expect(act(container)).resolves.toBeUndefined();
              else await expect(act(container)).resolves.toMatchObject(wanted);
            } finally {
              await container.destroy();
            }
            await container.exited;
          });
        }
      }

      unless(skips.processes, 'does nothing while it is paused', () =>
        using(async (container) => {
          const script = `globalThis.ticks = 0; setInterval(() => globalThis.ticks++, 5); return 0;`;
          await run(container, { do: 'script', script }).outcome;
          await container.pause();
          await new Promise((done) => setTimeout(done, 300));
          await container.resume();
          const outcome = await run(container, { do: 'script', script: 'return globalThis.ticks;' }).outcome;
          const ticks = outcome.type === 'result' ? (outcome.result as JsonObject).value : undefined;
          // 60 in that time otherwise; the platform's own delays around the pause count too.
          expect(Number(ticks)).toBeLessThan(30);
        }),
      );

      test('destroying while it runs loses the run', async () => {
        const container = await initialized(factory);
        const call = run(container, { do: 'hang' });
        await container.destroy();
        expect(await call.outcome).toEqual({ type: 'lost', oomKilled: false });
        expect(await call.logs).toEqual([]);
        await container.exited;
      });
    });

    describe('the factory', () => {
      test('knows its kinds', () => {
        expect(factory.supports(kind)).toBe(true);
        expect(factory.supports('cobol:1')).toBe(false);
      });

      test('matches equal specs', () => {
        expect(factory.match(spec, { ...spec })).toBe('exact');
        for (const other of [{ kind: 'other:1' }, { memoryMiB: 512 }, { concurrency: 2 }, { requirements: ['x'] }]) {
          expect(factory.match(spec, { ...spec, ...other })).toBe('none');
        }
      });

      test.each([
        [[], ['a'], 'subset'],
        [['a'], ['a', 'b'], 'subset'],
        [['a', 'b'], ['a', 'b'], 'exact'],
        [['a', 'c'], ['a', 'b'], 'none'],
        [['a'], [], 'none'],
      ])('what was loaded ahead may be less than what is wanted: %j for %j', (loaded, imports, expected) => {
        expect(factory.match({ ...spec, imports: loaded }, { ...spec, imports })).toBe(expected);
        expect(factory.match({ ...spec, imports: loaded, cuda: true }, { ...spec, imports })).toBe('none');
        const withCuda = expected === 'exact' ? 'subset' : expected;
        expect(factory.match({ ...spec, imports: loaded }, { ...spec, imports, cuda: true })).toBe(withCuda);
      });

      test('prewarms containers that are ready', async () => {
        const container = await factory.prewarm(spec);
        expect(await container.init(initRequest(), limits).outcome).toEqual({ type: 'ok' });
        await container.destroy();
      });

      test('destroys everything when it closes, and makes nothing more', async () => {
        const another = await open();
        const container = await initialized(another.factory);
        const call = run(container, { do: 'hang' });
        await another.factory.close();
        expect(await call.outcome).toEqual({ type: 'lost', oomKilled: false });
        await container.exited;
        await expect(another.factory.create(spec)).rejects.toThrow('factory');
        await another.close();
      });
    });
  });
}
