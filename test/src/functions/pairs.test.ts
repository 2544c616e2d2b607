// One process serves one action after the other, within its namespace: the memory suffices for one container only.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { hasNative } from '@gpuwhisk/invoker/runtimes/native-runtime';
import { join } from 'node:path';
import { compileObject } from '../native/native-functions.js';
import { annotation } from '../support/api-client.js';
import type { ApiClient } from '../support/api-client.js';
import { hasLauncher, hasPython } from '../support/machine.js';
import { newDataDir, removeDataDir, startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';
import { manifestWithStemCells, prewarmersOf } from '../support/stem-cells.js';

const otherAuth =
  '789c46b1-71f6-4ed5-8c54-816aa4f8c502:abczO3xZCLrMN6v2BKK1dXYFpXlPkccOFqm12CdAsMgRU4VrNZ9lyGVCGuMDGIwP';
const caseMs = 120_000;

/** Answers with its process's id and start time, which together identify the process; or crashes. */
const native = `
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
  while (strstr(json, "late")) sleep(1);
  snprintf(answer, sizeof answer, "{\\"pid\\":%d,\\"started\\":\\"%s\\"}", getpid(), field);
  return answer;
}
`;

const nodejs = `function main({ crash, late }) {
  if (crash) throw new Error('it went wrong');
  while (late) continue;
  return { pid: process.pid, started: String(performance.timeOrigin) };
}`;

const python = `import os
def main(args):
    if args.get("crash"):
        os._exit(1)
    while args.get("late"):
        pass
    with open("/proc/self/stat") as file:
        return {"pid": os.getpid(), "started": file.read().rsplit(")", 1)[1].split()[19]}
`;

describe.each<[family: string, kind: string, code: () => string | Buffer, isHere: boolean]>([
  ['native', 'native:1', () => compileObject(native), hasNative()],
  ['nodejs', 'nodejs:default', () => nodejs, hasLauncher],
  ['python', 'python:default', () => python, hasNative() && hasPython],
])('a pair of %s', (family, kind, code, isHere) => {
  const dataDir = newDataDir();
  let platform: RunningPlatform;

  beforeAll(async () => {
    if (!isHere) return;
    const manifest = manifestWithStemCells(join(dataDir, '..'), [family]);
    const flags = ['--memory', '256', '--runtimes', manifest, '--set', 'pool.pauseGraceMs=300'];
    platform = await startPlatform({ dataDir, flags });
    const text = code();
    for (const api of [platform.api, platform.api.as(otherAuth)]) {
      for (const name of ['one', 'other']) await api.putAction(name, text, { kind });
      await api.putAction('late', text, { kind, limits: { timeout: 500 } });
    }
    await until('a pair is ready', async () => (await prewarmersOf(platform)).length === 1, caseMs);
  }, caseMs);
  afterAll(async () => {
    await platform?.stop();
    removeDataDir(dataDir);
  }, caseMs);

  async function run(api: ApiClient, name: string, payload = {}) {
    const { record } = await api.run(name, payload);
    return { result: record.response.result, start: annotation(record, 'start') };
  }

  (isHere ? test : test.skip)(
    'serves the actions of a namespace one after the other, also after a crash and, by a proxy, a time-out, and no other namespace',
    async () => {
      const first = await run(platform.api, 'one');
      const { result } = first;
      expect(first).toEqual({ result: { pid: expect.any(Number), started: expect.any(String) }, start: 'injected' });
      expect(await run(platform.api, 'one')).toEqual({ result, start: undefined });
      expect(await run(platform.api, 'other')).toEqual({ result, start: 'injected' });
      // The container is frozen after this time.
      await new Promise((done) => setTimeout(done, 2000));
      expect(await run(platform.api, 'one')).toEqual({ result, start: 'injected' });
      const { record } = await platform.api.run('one', { crash: true });
      expect(record.response.status).toBe('action developer error');
      expect(await run(platform.api, 'one')).toEqual({ result, start: 'injected' });
      const late = await platform.api.run('late', { late: true });
      expect(annotation(late.record, 'timeout')).toBe(true);
      expect(late.record.response.result).toEqual({ error: expect.stringContaining('500 milliseconds') });
      const next = await run(platform.api, 'one');
      if (family !== 'nodejs') expect(next).toEqual({ result, start: 'injected' });
      else expect(next).toEqual({ result: { pid: expect.any(Number), started: expect.any(String) }, start: 'cold' });
      const foreign = await run(platform.api.as(otherAuth), 'one');
      expect(foreign.start).toBe('cold');
      expect(foreign.result).toEqual({ pid: expect.any(Number), started: expect.any(String) });
      expect(foreign.result).not.toEqual(result);
    },
    caseMs,
  );
});
