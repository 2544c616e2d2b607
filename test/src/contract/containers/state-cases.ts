import { describe, expect, test } from '@jest/globals';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { Container, Outcome } from '@gpuwhisk/invoker/containers/container-factory';
import { initRequest, limits, spec } from '../container-calls.js';
import { initialized, run } from './cases.js';
import type { ContainerCases } from './cases.js';

/** What may be asked of a container in which state. */
export function stateCases(cases: ContainerCases): void {
  const { using, unless, skips } = cases;
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
          const container = await cases.factory.create(spec);
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

    unless(skips.processes, 'tells the processor time that it has used, where it can', () =>
      using(async (container) => {
        const beforeMs = await container.processorMs();
        const script = `const end = process.cpuUsage().user + 150e3; while (process.cpuUsage().user < end); return 0;`;
        await run(container, { do: 'script', script }).outcome;
        const afterMs = await container.processorMs();
        if (beforeMs === undefined) expect(afterMs).toBeUndefined();
        else expect(Number(afterMs) - beforeMs).toBeGreaterThan(100);
      }),
    );

    test('destroying while it runs loses the run', async () => {
      const container = await initialized(cases.factory);
      const call = run(container, { do: 'hang' });
      await container.destroy();
      expect(await call.outcome).toEqual({ type: 'lost', oomKilled: false });
      expect(await call.logs).toEqual([]);
      await container.exited;
    });
  });
}
