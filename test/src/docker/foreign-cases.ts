import { describe, expect, test } from '@jest/globals';
import type { Container } from '@gpuwhisk/invoker/containers/container-factory';
import { initRequest, limits, spec } from '../contract/container-calls.js';
import { run, textOf } from '../contract/containers/cases.js';
import { httpKind, openDockerFactory } from './docker-harness.js';
import type { DockerEngine } from './docker-engine.js';

const MiB = 1024 * 1024;

/** Cases of containers of images that speak OpenWhisk's protocol. */
export function foreignCases(engine: () => DockerEngine): void {
  const using = async (use: (container: Container) => Promise<void>, code = ''): Promise<void> => {
    const { factory, close } = await openDockerFactory(engine());
    try {
      const container = await factory.create({ ...spec, kind: httpKind });
      const outcome = await container.init(initRequest(code), limits).outcome;
      expect(outcome).toMatchObject(code === 'fail' ? { type: 'error', error: 'no' } : { type: 'ok' });
      await use(container);
    } finally {
      await close();
    }
  };

  describe('images that speak HTTP', () => {
    test('answer init and run, and print up to their sentinels', () =>
      using(async (container) => {
        for (let round = 0; round < 3; round++) {
          const call = run(container, { do: 'log', round });
          expect(await call.outcome).toEqual({ type: 'result', result: { ok: true }, bytes: 11 });
          expect((await call.logs).map(textOf).sort()).toEqual(['err', 'out']);
        }
        expect(await run(container, { do: 'error', error: 'bad' }).outcome).toMatchObject({ error: 'bad' });
        expect(await run(container, { do: 'string' }).outcome).toEqual({ type: 'error', body: '"text"' });
        const big = await run(container, { do: 'big', bytes: 3 * MiB }, { truncationBytes: 10 }).outcome;
        expect(big).toEqual({ type: 'oversize', head: '{"a":"xxxx', bytes: 3 * MiB });
        expect(await run(container, { do: 'busy' }).outcome).toEqual({ type: 'unavailable' });
      }));

    test('may print 100 MB, of which the limit is kept, and be paused', () =>
      using(async (container) => {
        const beforeBytes = process.memoryUsage().rss;
        const call = run(
          container,
          { do: 'print', bytes: 100 * MiB, line: `${'x'.repeat(1023)}\n` },
          { logLimitBytes: 1000 },
        );
        expect(await call.outcome).toMatchObject({ type: 'result' });
        expect((await call.logs).at(-1)).toContain('truncated');
        expect(process.memoryUsage().rss - beforeBytes).toBeLessThan(64 * MiB);
        await container.pause();
        await expect(run(container, {}).outcome).rejects.toThrow('is paused');
        await container.resume();
        expect(await run(container, { a: 1 }).outcome).toMatchObject({ result: { a: 1 } });
      }));

    test('are ended when they hang, and lost when they end', () =>
      using(async (container) => {
        expect(await run(container, { do: 'hang' }, { timeoutMs: 200 }).outcome).toEqual({ type: 'timeout' });
        expect(await run(container, { do: 'exit' }).outcome).toEqual({ type: 'lost', oomKilled: false });
        await container.exited;
      }));

    test('say why they cannot be initialized', () => using(async () => undefined, 'fail'));
  });
}
