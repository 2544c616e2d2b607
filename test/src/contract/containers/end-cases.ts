import { describe, expect, test } from '@jest/globals';
import { initRequest, limits, spec } from '../container-calls.js';
import { initialized, run, textOf } from './cases.js';
import type { ContainerCases } from './cases.js';

/** Cases for ends of containers and failed inits. */
export function endCases(cases: ContainerCases): void {
  const { using, unless, skips } = cases;
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
        const container = await cases.factory.create(spec);
        const call = container.init(initRequest(code), { ...limits, timeoutMs: code === 'hang' ? 100 : 20_000 });
        expect(await call.outcome).toMatchObject(outcome);
        expect(await call.logs).toEqual([]);
        await container.destroy();
      });
    }

    unless(skips.frames, 'says unavailable for an init in place of whose answer the runtime says bye', async () => {
      const container = await cases.factory.create(spec);
      const call = container.init(initRequest('bye'), limits);
      expect(await call.outcome).toEqual({ type: 'unavailable' });
      expect(await call.logs).toEqual([]);
      await container.destroy();
    });

    unless(skips.processes, 'outlives a program that forks to the limit, and others do not notice', async () => {
      const [hostile, other] = await Promise.all([
        initialized(cases.factory, { memoryMiB: 1024 }),
        initialized(cases.factory),
      ]);
      const script = `let failed = 0; for (let i = 0; i < 1100; i++) {
        await new Promise((done) => { const child = spawn('/bin/sleep', ['60']); child.on('spawn', done);
          child.on('error', () => { failed++; done(); }); }); if (failed > 0) break; } return failed;`;
      const call = run(hostile, { do: 'script', script });
      expect(await run(other, { fine: true }).outcome).toMatchObject({ type: 'result', result: { fine: true } });
      const outcome = await call.outcome;
      expect(outcome).toMatchObject({ type: 'result' });
      const another = await initialized(cases.factory);
      expect(await run(another, { fine: 2 }).outcome).toMatchObject({ result: { fine: 2 } });
      await Promise.all([hostile, other, another].map((container) => container.destroy()));
    });
  });
}
