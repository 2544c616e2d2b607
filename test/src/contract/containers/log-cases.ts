import { describe, expect, test } from '@jest/globals';
import { initRequest, limits, spec } from '../container-calls.js';
import { run, textOf } from './cases.js';
import type { ContainerCases } from './cases.js';

/** Cases for the output of functions. */
export function logCases(cases: ContainerCases): void {
  const { using, unless, skips } = cases;
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
      const container = await cases.factory.create(spec);
      const init = container.init(initRequest('print'), limits);
      expect(await init.outcome).toMatchObject({ type: 'ok' });
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
        expect(textOf(last)).toBe('Logs were truncated because the total bytes size exceeds the limit of 1000 bytes.');
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
}
