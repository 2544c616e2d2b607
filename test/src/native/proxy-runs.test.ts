import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { nativePrewarmerPath, proxyPath } from '@gpuwhisk/invoker/host/native-programs';
import { RuntimeProcess } from '../runtimes/runtime-harness.js';
import { compileObject, echoSource, injector } from './native-functions.js';

const notLoaded = 'Cannot start action. Check logs for details.';

(injector ? describe : describe.skip)('a native function that serves runs by itself', () => {
  let runtime: RuntimeProcess;
  beforeEach(() => {
    const command = [proxyPath, 'native:1', nativePrewarmerPath];
    const env = { GPUWHISK_RUNS_FD: '4' };
    runtime = new RuntimeProcess({ command, binds: [], env, protocol: 'framed', servesRuns: true });
  });
  afterEach(() => runtime.close());

  const init = (code: Buffer) => runtime.init({ code: code.toString('base64'), binary: true, main: 'main' });
  const soon = () => ({ deadline: String(Date.now() + 20_000) });
  const direct = () => runtime.frames.filter(({ type, isDirect }) => isDirect && type === 4).length;
  const body = (statements: string) => `
    #include <malloc.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/socket.h>
    #include <unistd.h>
    static char text[4096];
    static int count;
    const char *gpuwhisk_main(const char *json) { count++; ${statements} }`;

  test('answers by the socket for runs, and the proxy all else', async () => {
    const statements =
      'printf("run %d\\n", count); snprintf(text, 4096, "[%s,\\"%s\\",%d]", json, getenv("__OW_ACTIVATION_ID"), count); return text;';
    await init(compileObject(body(statements)));
    for (const [n, id] of ['one', 'another one'].entries()) {
      const answer = await runtime.run({ a: 'ü☃' }, { ...soon(), activation_id: id });
      expect(answer).toMatchObject({ isError: false, body: [{ a: 'ü☃' }, id, n + 1] });
      expect(answer.stdout).toContain(`run ${n + 1}\n`);
    }
    expect(direct()).toBe(2);
    expect((await runtime.check()).body).toEqual({ ok: true });
    const batch = await runtime.run([{ b: 1 }, {}], { ...soon(), activation_id: 'b', batch: '2' });
    expect(batch.body).toEqual([
      [{ b: 1 }, 'b', 3],
      [{}, 'b', 4],
    ]);
    expect(direct()).toBe(2);
    expect((await runtime.run({}, { ...soon(), activation_id: 'c' })).body).toEqual([{}, 'c', 5]);
    expect(direct()).toBe(3);
    expect((await runtime.unload(true)).isError).toBe(false);
    await init(compileObject(echoSource));
    const long = { a: 'x'.repeat(3_000_000) };
    expect((await runtime.run(long, soon())).body).toEqual({ got: long, count: 1 });
    expect(direct()).toBe(4);
    expect((await runtime.unload()).isError).toBe(false);
  });

  test.each([
    ['a text that is no JSON', 'return "nothing";', 'The action did not return a dictionary or array.', 2],
    ['no text', 'return NULL;', notLoaded, 1],
  ])('%s is no result, and the next run is served', async (_name, statement, error, next) => {
    await init(
      compileObject(body(`if (strstr(json, "bad")) ${statement} snprintf(text, 99, "[%d]", count); return text;`)),
    );
    expect(await runtime.run({ bad: 1 }, soon())).toMatchObject({ isError: true, body: { error } });
    for (const n of [next, next + 1]) expect((await runtime.run({}, soon())).body).toEqual([n]);
    expect(direct()).toBeGreaterThan(0);
    expect((await runtime.unload()).isError).toBe(false);
  });

  test.each([
    ['a crash', '*(volatile int *)8 = 1;', /SIGSEGV/],
    ['an exit', 'exit(3);', /exited unexpectedly/],
    ['a result that is nowhere', 'return (const char *)16;', /SIGSEGV/],
  ])('%s is told by the proxy, and the next run loads the code again', async (_name, statement, error) => {
    await init(
      compileObject(body(`if (strstr(json, "die")) { ${statement} } snprintf(text, 99, "[%d]", count); return text;`)),
    );
    expect((await runtime.run({}, soon())).body).toEqual([1]);
    const died = await runtime.run({ die: 1 }, soon());
    expect(died).toMatchObject({ isError: true, body: { error: expect.stringMatching(error) } });
    for (const n of [1, 2]) expect((await runtime.run({}, soon())).body).toEqual([n]);
    expect((await runtime.unload()).isError).toBe(false);
  });

  test('a cancelled run has a second to end, and is rolled back then', async () => {
    await init(compileObject(body('usleep(strstr(json, "long") ? 30000000 : 500000); return json;')));
    const patient = runtime.run({}, soon());
    await sleep(100);
    runtime.send(7, 2, '{}');
    expect((await patient).body).toEqual({});
    const late = runtime.run({ long: 1 }, soon());
    await sleep(100);
    runtime.send(7, 3, '{}');
    expect((await late).body).toEqual({ error: 'The function exceeded its time limit.' });
    expect((await runtime.unload()).isError).toBe(false);
  });

  test('the environment of runs takes no memory from run to run', async () => {
    const statements =
      'struct mallinfo2 now = mallinfo2(); snprintf(text, 99, "[%zu,%zu]", now.uordblks, strlen(getenv("__OW_ACTIVATION_ID"))); return text;';
    await init(compileObject(body(statements)));
    const used: number[] = [];
    for (let run = 0; run < 300; run += 1) {
      const id = `${run}-`.padEnd(32, 'f');
      const [bytes, length] = (await runtime.run({}, { ...soon(), activation_id: id, transaction_id: id }))
        .body as number[];
      expect(length).toBe(32);
      used.push(bytes!);
    }
    expect(used.at(-1)! - used[9]!).toBeLessThan(1024);
  });

  test('a function that closes the socket for runs is answered for by the proxy, and its pair ends', async () => {
    await init(compileObject(body('close(500); return json;')));
    for (const a of [1, 2]) expect((await runtime.run({ a }, soon())).body).toEqual({ a });
    expect((await runtime.unload()).isError).toBe(true);
  });

  test('an option that a function leaves in the socket for runs ends the pair', async () => {
    const statements = 'int low = 5000; setsockopt(500, SOL_SOCKET, SO_RCVLOWAT, &low, sizeof low); return "{}";';
    await init(compileObject(body(statements)));
    await runtime.run({}, soon());
    expect(await runtime.unload()).toMatchObject({
      isError: true,
      body: { error: expect.stringContaining('socket for runs') },
    });
    expect(await runtime.exited).toBe(1);
  });
});
