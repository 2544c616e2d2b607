// Native functions on the running platform: a shared object, and source that is compiled first.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { hasNative } from '@gpuwhisk/invoker/runtimes/native-runtime';
import { compileObject, echoSource } from '../native/native-functions.js';
import { logTexts } from '../support/api-client.js';
import { newDataDir, removeDataDir, startPlatform } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const kind = 'native:1';
const caseMs = 120_000;

(hasNative() ? describe : describe.skip)('native functions', () => {
  const dataDir = newDataDir();
  let platform: RunningPlatform;

  beforeAll(async () => {
    platform = await startPlatform({ dataDir });
  }, caseMs);
  afterAll(async () => {
    await platform?.stop();
    removeDataDir(dataDir);
  }, caseMs);

  async function outcome(code: string | Buffer, payload = {}) {
    await platform.api.putAction('native', code, { kind });
    return platform.api.run('native', payload);
  }

  test(
    'a shared object is injected, and stays loaded',
    async () => {
      const { record } = await outcome(compileObject(echoSource), { name: 'Ada' });
      expect(record.response.result).toEqual({ got: { name: 'Ada' }, count: 1 });
      const again = await platform.api.run('native', { name: 'Bob' });
      expect(again.record.response.result).toEqual({ got: { name: 'Bob' }, count: 2 });
    },
    caseMs,
  );

  test(
    'source is compiled: C, C++',
    async () => {
      const c = '#include <stdio.h>\nconst char *gpuwhisk_main(const char *json) { puts("in C"); return json; }';
      const inC = await outcome(c, { a: 1 });
      expect(inC.record.response.result).toEqual({ a: 1 });
      expect(logTexts(inC.record)).toContain('in C');
      const cpp =
        '#include <string>\nextern "C" const char *gpuwhisk_main(const char *json) { static std::string s(json); return s.c_str(); }';
      expect((await outcome(cpp, { b: 2 })).record.response.result).toEqual({ b: 2 });
    },
    caseMs,
  );

  test(
    'a function writes files in its working folder and in /tmp',
    async () => {
      const source = `#include <stdio.h>
        static int writes(const char *path) {
          FILE *file = fopen(path, "w");
          return file && fputs("x", file) >= 0 && fclose(file) == 0;
        }
        const char *gpuwhisk_main(const char *json) {
          static char text[99];
          snprintf(text, 99, "[%d,%d,%d]", writes("here"), writes("/tmp/there"), writes("/usr/nowhere"));
          return text;
        }`;
      expect((await outcome(source)).record.response.result).toEqual([1, 1, 0]);
    },
    caseMs,
  );

  test(
    'a crash is an error of the action, and the next invocation is right',
    async () => {
      const source = `#include <string.h>
        static int *volatile nowhere;
        const char *gpuwhisk_main(const char *json) { if (strstr(json, "die")) *nowhere = 1; return "{}"; }`;
      const died = await outcome(source, { die: 1 });
      expect(died.record.response).toMatchObject({ success: false });
      expect(JSON.stringify(died.record.response.result)).toContain('SIGSEGV');
      expect((await platform.api.run('native', {})).record.response.result).toEqual({});
    },
    caseMs,
  );

  test(
    'source that does not compile is refused with the reason',
    async () => {
      const { record } = await outcome('int gpuwhisk_main( {');
      expect(record.response.success).toBe(false);
      expect(logTexts(record).join('\n')).toMatch(/error:/);
    },
    caseMs,
  );
});
