// One process serves one action after the other, within its namespace: memory is there for one container only.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { hasNative } from '@gpuwhisk/invoker/runtimes/native-runtime';
import { compileObject } from '../native/native-functions.js';
import { annotation } from './api-client.js';
import type { ApiClient } from './api-client.js';
import { newDataDir, removeDataDir, startPlatform } from './running-platform.js';
import type { RunningPlatform } from './running-platform.js';

const operator =
  '789c46b1-71f6-4ed5-8c54-816aa4f8c502:abczO3xZCLrMN6v2BKK1dXYFpXlPkccOFqm12CdAsMgRU4VrNZ9lyGVCGuMDGIwP';
const caseMs = 120_000;

/** Answers with its process's id and start time, which no other process has both. */
const source = `
#include <stdio.h>
#include <string.h>
#include <unistd.h>
const char *gpuwhisk_main(const char *json) {
  static char answer[128];
  char text[1024] = {0};
  FILE *file = fopen("/proc/self/stat", "r");
  if (!file) return "{\\"error\\":\\"no /proc\\"}";
  fread(text, 1, sizeof text - 1, file);
  fclose(file);
  char *field = strrchr(text, ')') + 2;
  for (int number = 3; number < 22; number++) field = strchr(field, ' ') + 1;
  *strchr(field, ' ') = 0;
  if (strstr(json, "crash")) *(volatile int *)0 = 1;
  snprintf(answer, sizeof answer, "{\\"pid\\":%d,\\"started\\":\\"%s\\"}", getpid(), field);
  return answer;
}
`;

(hasNative() ? describe : describe.skip)('a pair', () => {
  const dataDir = newDataDir();
  let platform: RunningPlatform;

  beforeAll(async () => {
    const flags = ['--memory', '256', '--stem-cells', 'false', '--set', 'pool.pauseGraceMs=300'];
    platform = await startPlatform({ dataDir, flags });
    const code = compileObject(source);
    for (const api of [platform.api, platform.api.as(operator)]) {
      for (const name of ['one', 'other']) await api.putAction(name, code, { kind: 'native:1' });
    }
  }, caseMs);
  afterAll(async () => {
    await platform?.stop();
    removeDataDir(dataDir);
  }, caseMs);

  async function run(api: ApiClient, name: string, payload = {}) {
    const { record } = await api.run(name, payload);
    return { result: record.response.result, start: annotation(record, 'start') };
  }

  test(
    'serves two actions of a namespace one after the other, and no other namespace',
    async () => {
      const first = await run(platform.api, 'one');
      expect(first).toEqual({ result: { pid: expect.any(Number), started: expect.any(String) }, start: 'cold' });
      expect(await run(platform.api, 'one')).toEqual({ result: first.result, start: undefined });
      expect(await run(platform.api, 'other')).toEqual({ result: first.result, start: 'injected' });
      // Frozen by then.
      await new Promise((done) => setTimeout(done, 2000));
      expect(await run(platform.api, 'one')).toEqual({ result: first.result, start: 'injected' });
      const foreign = await run(platform.api.as(operator), 'one');
      expect(foreign.start).toBe('cold');
      expect(foreign.result).not.toEqual(first.result);
    },
    caseMs,
  );

  test(
    'whose action crashed serves the next',
    async () => {
      const first = await run(platform.api, 'one');
      const { record } = await platform.api.run('one', { crash: true });
      expect(record.response).toMatchObject({ status: 'action developer error' });
      expect(await run(platform.api, 'one')).toEqual({ result: first.result, start: 'injected' });
    },
    caseMs,
  );
});
