import { describe, expect, test } from '@jest/globals';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { Container, CallOutcome } from '@gpuwhisk/invoker/containers/container-factory';
import { initRequest, limits, spec } from '../container-calls.js';
import { initialized, run } from './cases.js';
import type { ContainerCases } from './cases.js';

/** Cases for calls that a container accepts in each of its states. */
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
    const result: Partial<CallOutcome> = { type: 'result' };
    /** Calls that end the state. */
    const leaving: Record<string, readonly string[]> = {
      created: ['init', 'run', 'unload', 'pause'],
      initialized: ['unload', 'pause'],
      paused: ['resume'],
      resumed: ['init', 'run', 'unload', 'pause'],
    };
    const lost = { type: 'lost', oomKilled: false };
    const settled = { pause: undefined, resume: undefined, destroy: undefined };
    const fresh = { init: ok, run: result, unload: ok, check: ok, ...settled };
    const states: Record<string, { reach: Action; expected: Record<string, object | string | undefined> }> = {
      created: {
        reach: () => Promise.resolve(),
        expected: fresh,
      },
      initialized: {
        reach: (container) => container.init(initRequest(), limits).outcome,
        expected: {
          init: 'more than once',
          run: result,
          unload: ok,
          check: ok,
          ...settled,
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
          ...settled,
          pause: 'while it runs',
        },
      },
      paused: {
        reach: (container) => container.pause(),
        expected: {
          init: 'is paused',
          run: 'is paused',
          unload: 'is paused',
          check: 'is paused',
          ...settled,
        },
      },
      resumed: {
        reach: async (container) => {
          await container.pause();
          await container.resume();
        },
        expected: fresh,
      },
      destroyed: {
        reach: (container) => container.destroy(),
        expected: {
          init: lost,
          run: lost,
          unload: lost,
          check: lost,
          ...settled,
        },
      },
    };
    const ask = async (container: Container, method: string, wanted: object | string | undefined): Promise<void> => {
      const asked = actions[method]?.(container);
      if (typeof wanted === 'string') await expect(asked).rejects.toThrow(wanted);
      else if (wanted === undefined) await expect(asked).resolves.toBeUndefined();
      else await expect(asked).resolves.toMatchObject(wanted);
    };
    const inState = async (reach: Action, use: (container: Container) => Promise<void>): Promise<void> => {
      const container = await cases.factory.create(spec);
      try {
        await reach(container);
        await use(container);
      } finally {
        await container.destroy();
      }
      await container.exited;
    };
    for (const [state, { reach, expected }] of Object.entries(states)) {
      const changing = leaving[state] ?? [];
      const others = Object.keys(actions).filter((method) => !changing.includes(method) && method !== 'destroy');
      // All on one container: some factories take a second to make one.
      test(`${others.join(', ')} and at last destroy of a container that is ${state}`, () =>
        inState(reach, async (container) => {
          for (const method of [...others, 'destroy']) await ask(container, method, expected[method]);
        }));
      for (const method of changing) {
        test(`${method} of a container that is ${state}`, () =>
          inState(reach, (container) => ask(container, method, expected[method])));
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
        // A running container would count 60 ticks. The bound leaves time for the platform's delays around the pause.
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
