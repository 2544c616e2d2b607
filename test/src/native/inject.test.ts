import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { compileObject, digestOf, echoSource, injector, TestPrewarmer } from './native-functions.js';

const onThisMachine = injector ? describe : describe.skip;

for (const [way, environment] of [
  ['write tracking', []],
  ['pages compared', ['GPUWHISK_NO_USERFAULT=1']],
] as const) {
  onThisMachine(`injection into the native pre-warmer, ${way}`, () => {
    let prewarmer: TestPrewarmer;
    let echo: Buffer;

    beforeAll(async () => {
      echo = compileObject(echoSource);
      prewarmer = await TestPrewarmer.launch([...environment]);
    });
    afterAll(() => prewarmer?.end());

    test('loads, runs, runs again and unloads a function', async () => {
      const before = prewarmer.state();
      const first = await prewarmer.run(echo, { name: 'Ada' });
      expect(first).toMatchObject({ kind: 'result', ready: true, result: '{"got":{"name":"Ada"},"count":1}' });
      expect(first.stages.map(({ name }) => name)).toEqual(['integrity', 'attach', 'checkpoint', 'execute']);
      expect(await prewarmer.call([2])).toMatchObject({ kind: 'result', result: '{"got":[2],"count":2}' });
      const unloaded = await prewarmer.unload();
      expect(unloaded).toMatchObject({ kind: 'result', ready: true });
      expect(unloaded.stages.map(({ name }) => name)).toEqual(['restore', 'verify', 'detach']);
      expect(prewarmer.state()).toEqual(before);
    });

    test('a function finds nothing of the one before', async () => {
      for (let i = 0; i < 3; i++) {
        expect((await prewarmer.run(echo, i)).result).toBe(`{"got":${i},"count":1}`);
        expect((await prewarmer.unload()).ready).toBe(true);
      }
    });

    test('sets the environment of a call', async () => {
      const code = compileObject(`
        #include <stdlib.h>
        const char *gpuwhisk_main(const char *json) { return getenv("__OW_NAMESPACE"); }`);
      const first = { argument: '{}', environment: ['__OW_NAMESPACE="guest"'] };
      expect(await prewarmer.run(code, {}, { first })).toMatchObject({ kind: 'result', result: '"guest"' });
      await prewarmer.unload();
      expect(await prewarmer.run(code)).toMatchObject({ kind: 'load', message: 'The function returned no text.' });
    });

    test('takes arguments and gives results of a megabyte', async () => {
      const text = 'x'.repeat(1 << 20);
      expect((await prewarmer.run(echo, text)).result).toHaveLength(text.length + 2 + '{"got":,"count":1}'.length);
      await prewarmer.unload();
    });

    test('refuses code whose digest is another', async () => {
      const before = prewarmer.state();
      const digest = digestOf(Buffer.from('other'));
      await expect(prewarmer.run(echo, {}, { digest })).rejects.toMatchObject({ code: 'digest' });
      expect(prewarmer.state()).toEqual(before);
    });

    test('one function at a time', async () => {
      await expect(prewarmer.call({})).rejects.toMatchObject({ code: 'not-ready' });
      await prewarmer.run(echo);
      await expect(prewarmer.run(echo)).rejects.toMatchObject({ code: 'not-ready' });
      expect((await prewarmer.unload()).ready).toBe(true);
    });
  });
}

onThisMachine('the addon', () => {
  test('does not hold the event loop while a function runs', async () => {
    const prewarmer = await TestPrewarmer.launch();
    const code = compileObject(`
      #include <unistd.h>
      const char *gpuwhisk_main(const char *json) { usleep(300000); return "{}"; }`);
    let turns = 0;
    const timer = setInterval(() => turns++, 10);
    expect((await prewarmer.run(code)).kind).toBe('result');
    clearInterval(timer);
    expect(turns).toBeGreaterThan(3);
    await prewarmer.end();
  });

  test('says so when a pre-warmer cannot start', async () => {
    await expect(injector!.launch({ program: '/bin/true' })).rejects.toMatchObject({ code: 'not-ready' });
    await expect(injector!.launch({ program: '/nowhere' })).rejects.toMatchObject({ code: 'not-ready' });
  });

  test('a pre-warmer that was killed is gone, and no other process is touched', async () => {
    const prewarmer = await TestPrewarmer.launch();
    process.kill(prewarmer.details.pid, 'SIGKILL');
    const code = compileObject(echoSource);
    await expect(prewarmer.run(code)).rejects.toMatchObject({ code: 'gone' });
    await prewarmer.end();
    await expect(prewarmer.run(code)).rejects.toMatchObject({ code: 'gone' });
  });

  test('names the argument that is wrong', async () => {
    expect(() => injector!.launch({ program: 1 } as never)).toThrow('program must be a string');
    expect(() => injector!.call({}, { argument: '' })).toThrow('target must be what launch returned');
  });
});
