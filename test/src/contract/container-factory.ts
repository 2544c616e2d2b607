import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ContainerFactory } from '@gpuwhisk/invoker/containers/container-factory';
import { initRequest, kind, limits, spec } from './container-calls.js';
import { initialized, run } from './containers/cases.js';
import type { ContainerCases, Skips } from './containers/cases.js';
import { endCases } from './containers/end-cases.js';
import { logCases } from './containers/log-cases.js';
import { runCases } from './containers/run-cases.js';
import { stateCases } from './containers/state-cases.js';

/** A factory under test, whose kind `test:1` behaves as guest-program.ts says. */
export interface FactoryUnderTest {
  factory: ContainerFactory;
  close(): Promise<void>;
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

    const cases: ContainerCases = {
      get factory() {
        return factory;
      },
      skips,
      unless(reason, title, body) {
        if (reason === undefined) test(title, body);
        else test.skip(`${title} (skipped: ${reason})`, body);
      },
      async using(use, wanted) {
        const container = await initialized(factory, wanted);
        try {
          await use(container);
        } finally {
          await container.destroy();
        }
      },
    };
    runCases(cases);
    logCases(cases);
    endCases(cases);
    stateCases(cases);

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
        expect(await container.init(initRequest(), limits).outcome).toMatchObject({ type: 'ok' });
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
