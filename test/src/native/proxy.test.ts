import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from '@jest/globals';
import { nativePrewarmerPath, proxyPath } from '@gpuwhisk/invoker/host/native-programs';
import { encodeParts } from '@gpuwhisk/invoker/containers/protocol/frames';
import { RuntimeProcess } from '../runtimes/runtime-harness.js';
import { compileObject, digestOf, echoSource, injector } from './native-functions.js';

const onThisMachine = injector ? describe : describe.skip;

onThisMachine('the proxy as a runtime', () => {
  let runtime: RuntimeProcess;

  function start(): RuntimeProcess {
    const command = [proxyPath, 'native:1', nativePrewarmerPath];
    runtime = new RuntimeProcess({ command, binds: [], env: {}, protocol: 'framed' });
    return runtime;
  }
  afterEach(() => runtime.close());

  const init = (code: Buffer, more: object = {}) =>
    start().init({ code: code.toString('base64'), binary: true, main: 'main', ...more });
  const soon = () => ({ deadline: String(Date.now() + 20_000) });

  const body = (statements: string) => `
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <unistd.h>
    static char text[4096];
    const char *gpuwhisk_main(const char *json) { ${statements} }`;

  test('greets, loads, and runs', async () => {
    expect((await init(compileObject(echoSource))).body).toEqual({ ok: true });
    const can = { parts: true, batch: true, unload: true, endsLate: true };
    expect(JSON.parse(runtime.frames[0]?.text ?? '')).toEqual({
      ...{ version: 1, kind: 'native:1', pid: expect.any(Number) },
      ...can,
    });
    expect((await runtime.run({ a: 'ü☃' }, soon())).body).toEqual({ got: { a: 'ü☃' }, count: 1 });
    expect((await runtime.run({}, soon())).body).toEqual({ got: {}, count: 2 });
    expect(await runtime.init({ code: 'x' })).toMatchObject({
      isError: true,
      body: { error: 'Cannot initialize the action more than once.' },
    });
    runtime.send(8, 0, '{}');
    expect(await runtime.exited).toBe(0);
  });

  test('says bye to an init when its pre-warmer has died while it waited', async () => {
    start();
    const hello = await runtime.frame(({ type }) => type === 1);
    const { pid } = JSON.parse(hello.text) as { pid: number };
    process.kill(pid, 'SIGKILL');
    while (!readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ')) await sleep(1);
    runtime.send(2, 1, encodeParts([['code', 'x']]));
    expect(await runtime.exited).toBe(1);
    expect(runtime.frames.slice(1)).toMatchObject([{ type: 8, id: 0, text: '{}' }]);
  });

  test('what the function prints is the log; the environment is set before the code is loaded', async () => {
    const code = compileObject(`
      #include <stdio.h>
      #include <stdlib.h>
      static const char *early;
      __attribute__((constructor)) static void first(void) { early = getenv("GIVEN"); }
      const char *gpuwhisk_main(const char *json) {
        static char text[256];
        printf("hello\\n");
        fprintf(stderr, "world\\n");
        snprintf(text, 256, "[\\"%s\\",\\"%s\\"]", early, getenv("__OW_NAMESPACE"));
        return text;
      }`);
    await init(code, { env: { GIVEN: 'a text' } });
    const answer = await runtime.run({}, { namespace: 'guest', ...soon() });
    expect(answer).toMatchObject({ isError: false, stdout: 'hello\n', stderr: 'world\n' });
    expect(answer.body).toEqual(['a text', 'guest']);
  });

  test.each([
    ['a text that is no JSON', 'return "nothing";'],
    ['a number', 'return "1";'],
    ['half an object', 'return "{\\"a\\":";'],
    ['two objects', 'return "{}{}";'],
  ])('%s is no result', async (_name, statements) => {
    await init(compileObject(body(statements)));
    expect(await runtime.run({}, soon())).toMatchObject({
      isError: true,
      body: { error: 'The action did not return a dictionary or array.' },
    });
  });

  test('a crash is an error with the frames in the log, and the next run is right', async () => {
    await init(compileObject(body('if (strstr(json, "die")) *(volatile int *)8 = 1; return "{\\"alive\\":true}";')));
    const died = await runtime.run({ die: 1 }, soon());
    expect(died).toMatchObject({ isError: true, body: { error: expect.stringContaining('SIGSEGV') } });
    expect(died.stderr).toMatch(/at address 0x8[^]*at gpuwhisk_main\+/);
    expect((await runtime.run({}, soon())).body).toEqual({ alive: true });
  });

  test('ends after its answer when the pre-warmer cannot be restored', async () => {
    await init(compileObject(body('if (strstr(json, "go")) { close(2); abort(); } return "{}";')));
    const lost = await runtime.run({ go: 1 }, soon());
    expect(lost).toMatchObject({ isError: true, stderr: expect.stringContaining('is given up') });
    expect(await runtime.exited).toBe(1);
  });

  test('unloads: the next function of the namespace is loaded into the same process', async () => {
    const code = compileObject(body('snprintf(text, 99, "{\\"pid\\":%d}", getpid()); return text;'));
    const env = { __OW_NAMESPACE: 'one' };
    await init(code, { env });
    const first = (await runtime.run({}, soon())).body;
    expect((await runtime.unload()).body).toEqual({ ok: true, verifyUs: expect.any(Number) });
    expect(await runtime.run({}, soon())).toMatchObject({ isError: true });
    expect((await runtime.check()).body).toEqual({ ok: true });
    const next = { code: code.toString('base64'), binary: true, main: 'main' };
    expect(await runtime.init({ ...next, env: { __OW_NAMESPACE: 'two' } })).toMatchObject({
      isError: true,
      body: { error: 'This runtime has run code of another namespace.' },
    });
    expect((await runtime.init({ ...next, env })).body).toEqual({ ok: true });
    expect((await runtime.run({}, soon())).body).toEqual(first);
  });

  test('a run ends at its deadline', async () => {
    await init(compileObject(body('for (;;);')));
    const late = await runtime.run({}, { deadline: String(Date.now() + 200) });
    expect(late).toMatchObject({ isError: true, body: { error: 'The function exceeded its time limit.' } });
  });

  test('another function than main, by its name', async () => {
    const code = compileObject('const char *other(const char *json) { return "{\\"other\\":1}"; }');
    expect((await init(code, { main: 'other' })).body).toEqual({ ok: true });
    expect((await runtime.run({}, soon())).body).toEqual({ other: 1 });
  });

  describe('several requests as one run', () => {
    const batch = (values: object[], more = soon()) => runtime.run(values, { batch: String(values.length), ...more });
    const alone = body(`
      if (strstr(json, "die")) *(volatile int *)8 = 1;
      if (strstr(json, "text")) return "none";
      if (strstr(json, "lost")) { close(2); abort(); }
      if (strstr(json, "late")) for (;;);
      static int count;
      snprintf(text, 99, "{\\"got\\":%s,\\"count\\":%d,\\"batch\\":%d}", json, ++count, getenv("__OW_BATCH") != NULL);
      return text;`);

    test('go to the entry for that, where the function has one', async () => {
      const together = `
        const char *gpuwhisk_main_batch(const char *json) {
          if (strstr(json, "die")) *(volatile int *)8 = 1;
          if (strstr(json, "few")) return "[{}]";
          if (strstr(json, "object")) return "{}";
          if (strstr(json, "errors")) return "[ {\\"a\\": 1} , \\"not this one\\", 5]";
          snprintf(text, 99, "[%s,[%d]]", json, getenv("__OW_BATCH") != NULL);
          return text;
        }`;
      await init(compileObject(alone + together));
      expect((await batch([{ a: 1 }, {}])).body).toEqual([[{ a: 1 }, {}], [0]]);
      expect((await batch([{ errors: 1 }, {}, {}])).body).toEqual([
        { a: 1 },
        'not this one',
        'The action did not return a dictionary or array.',
      ]);
      for (const wrong of ['few', 'object']) {
        const error = 'The action was given 2 requests and returned no array of as many results.';
        expect((await batch([{ [wrong]: 1 }, {}])).body).toEqual([error, error]);
      }
      expect(await batch([{ die: 1 }, {}])).toMatchObject({
        isError: true,
        body: { error: expect.stringContaining('SIGSEGV') },
      });
      expect((await batch([{}, {}])).body).toEqual([[{}, {}], [0]]);
      expect((await runtime.run({}, soon())).body).toEqual({ got: {}, count: 1, batch: 0 });
    });

    test('by the name of another function than main', async () => {
      const code = `
        const char *other(const char *json) { return "{}"; }
        const char *other_batch(const char *json) { return "[{\\"together\\":1}]"; }`;
      await init(compileObject(code), { main: 'other' });
      expect((await batch([{}])).body).toEqual([{ together: 1 }]);
    });

    test('run one after the other otherwise: what fails is the one, and the others go on', async () => {
      await init(compileObject(alone));
      const got = (value: object, count: number) => ({ got: value, count, batch: 0 });
      expect((await batch([{ a: 1 }, { b: 2 }])).body).toEqual([got({ a: 1 }, 1), got({ b: 2 }, 2)]);
      const answer = await batch([{}, { text: 1 }, { die: 1 }, { c: 3 }]);
      expect(answer).toMatchObject({ isError: false, stderr: expect.stringContaining('at gpuwhisk_main+') });
      expect(answer.body).toEqual([
        got({}, 3),
        'The action did not return a dictionary or array.',
        expect.stringContaining('SIGSEGV'),
        got({ c: 3 }, 1), // The function was loaded again.
      ]);
      expect((await runtime.run({}, soon())).body).toEqual(got({}, 2));
    });

    test('after one that took all the time, or the process, the others are errors', async () => {
      await init(compileObject(alone));
      const late = 'The function exceeded its time limit.';
      const answer = await batch([{}, { late: 1 }, {}], { deadline: String(Date.now() + 1000) });
      expect(answer.body).toEqual([{ got: {}, count: 1, batch: 0 }, late, late]);
      const exited = 'The action did not produce a valid response and exited unexpectedly.';
      expect((await batch([{}, { lost: 1 }, {}])).body).toEqual([
        { got: {}, count: 1, batch: 0 },
        expect.stringContaining('SIGABRT'),
        exited,
      ]);
      expect(await runtime.exited).toBe(1);
    });
  });

  test.each([
    ['JSON', Buffer.from('{"value":{}}')],
    ['a name without bytes', encodeParts([['value', '{}']]).subarray(0, 9)],
    ['a length beyond the end', Buffer.concat([encodeParts([['value', '{}']]), Buffer.from([1, 0, 0, 0])])],
  ])('a payload that is no list of parts ends it: %s', async (_, payload) => {
    await init(compileObject(echoSource));
    runtime.send(3, 9, payload);
    expect(await runtime.exited).toBe(70);
    expect(runtime.stderr).toContain('Protocol violation: The payload is no list of parts.');
  });

  test('a variable with a null byte in it is left out', async () => {
    const code = compileObject(
      body('snprintf(text, 99, "[\\"%s\\"]", getenv("GIVEN") ? "there" : "not"); return text;'),
    );
    await init(code, { env: { GIVEN: 'a\0OTHER=b' } });
    expect((await runtime.run({}, soon())).body).toEqual(['not']);
  });

  test.each<[string, () => Promise<{ isError: boolean; body: unknown }>, RegExp]>([
    ['no code', () => start().init({ code: '' }), /Missing main/],
    ['no shared object', () => start().init({ code: 'int main;' }), /is no ELF file/],
    ['no base64', () => start().init({ code: '*', binary: true }), /not valid base64/],
    ['another digest', () => init(compileObject(echoSource), { digest: digestOf(Buffer.from('')) }), /SHA-256/],
    ['no entry', () => init(compileObject(echoSource), { main: 'absent' }), /Cannot start action/],
  ])('init with %s is refused', async (_name, answer, message) => {
    const { isError, body } = await answer();
    expect({ isError, body }).toEqual({ isError: true, body: { error: expect.stringMatching(message) } });
  });

  test('dies with the invoker, in the middle of a run too, and the pre-warmer with it', async () => {
    const code = compileObject(
      body('snprintf(text, 99, "{\\"pid\\":%d}", getpid()); if (strstr(json, "on")) for (;;); return text;'),
    );
    await init(code);
    const { pid } = (await runtime.run({}, soon())).body as { pid: number };
    runtime.send(3, 99, encodeParts([['value', '{"on":1}'], ...Object.entries(soon())]));
    runtime.socket.end();
    await runtime.exited;
    const until = Date.now() + 10_000;
    while (Date.now() < until && isAlive(pid)) await new Promise((resolve) => setTimeout(resolve, 20));
    expect(isAlive(pid)).toBe(false);
  });

  test('ends for what no frame may be', async () => {
    start();
    await runtime.frame(({ type }) => type === 1);
    runtime.send(4, 1, '{}');
    expect(await runtime.exited).toBe(70);
  });
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
