import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { InjectionOutcome } from './inject-addon.js';
import { pythonArchives, pythonSources, zipOf } from '../runtimes/python-cases.js';
import type { RuntimeCase } from '../runtimes/runtime-cases.js';
import { compileObject } from './native-functions.js';
import { python, PythonPrewarmer } from './python-functions.js';

(python ? describe : describe.skip)('the Python pre-warmer', () => {
  let prewarmer: PythonPrewarmer;

  beforeAll(async () => {
    prewarmer = await PythonPrewarmer.launch();
  });
  afterAll(() => prewarmer.end());

  /** Checks all expectations of a runtime case: injected functions give the same answers as others. */
  async function check(given: RuntimeCase, code: Buffer): Promise<void> {
    const environment = Object.entries(given.env ?? {}).map(([name, value]) => `${name}=${value}`);
    if (given.entry) environment.push(`GPUWHISK_ENTRY=${given.entry}`);
    const loaded = await prewarmer.inject(code, undefined, { entry: given.main ?? 'main', environment });
    const batch = given.batch === true ? [`__OW_BATCH=${(given.value as unknown[]).length}`] : [];
    const answer = loaded.kind === 'result' ? await prewarmer.call(given.value ?? {}, batch) : loaded;
    const stays = answer.kind === 'result' || answer.kind === 'refused';
    expect(stays ? await prewarmer.unload() : answer).toMatchObject({ ready: true, replace: '' });
    checkAnswer(given, answer);
    const printed = prewarmer.printed();
    for (const text of [given.stdout, given.stderr]) {
      if (typeof text === 'string') expect(printed).toContain(text);
      else if (text) expect(printed).toMatch(new RegExp(text.source.replace(/^\^/, '')));
    }
  }

  const cases = pythonSources.filter((given) => given.code !== '');
  test.each(cases)('source: $name', (given) => check(given, Buffer.from(given.code)));
  test.each(pythonArchives)('zip: $name', ({ files, ...given }) => check(given, Buffer.from(zipOf(files), 'base64')));

  test('a function is kept between calls, and the next one finds nothing of it', async () => {
    const counting = 'count = 0\ndef main(args):\n  global count\n  count += 1\n  return {"count": count}';
    expect(JSON.parse((await prewarmer.inject(counting, {})).result)).toEqual({ count: 1 });
    expect(JSON.parse((await prewarmer.call({})).result)).toEqual({ count: 2 });
    expect(await prewarmer.unload()).toMatchObject({ kind: 'result', ready: true });
    expect(await prewarmer.result(counting)).toEqual({ count: 1 });
  });

  test('runs see the variables of their own call', async () => {
    const code =
      'import os\ndef main(args):\n  return {"id": os.environ.get("__OW_ACTIVATION_ID"), "a": os.environ["A"]}';
    await prewarmer.inject(code, undefined, { environment: ['A=1'] });
    const answer = await prewarmer.call({}, ['__OW_ACTIVATION_ID=abc']);
    expect(JSON.parse(answer.result)).toEqual({ id: 'abc', a: '1' });
    await prewarmer.unload();
    expect(await prewarmer.result('import os\ndef main(args):\n  return {"a": os.environ.get("A")}')).toEqual({
      a: null,
    });
  });

  test('code that is not what was registered is not loaded', async () => {
    const digest = '0'.repeat(64);
    await expect(prewarmer.inject('main = dict', {}, { digest })).rejects.toMatchObject({ code: 'digest' });
    expect(await prewarmer.result('main = dict', { a: 1 })).toEqual({ a: 1 });
  });

  test('3,000 functions leave neither memory nor descriptors', async () => {
    const resident = () => Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${prewarmer.pid}/status`, 'utf8'))?.[1]);
    const descriptors = () => readdirSync(`/proc/${prewarmer.pid}/fd`).length;
    const serve = (n: number) =>
      prewarmer.result('import json\ndef main(args):\n  return {"n": len(json.dumps([args] * 500))}', { n });
    for (let run = 0; run < 500; run += 1) await serve(run);
    const before = { kiB: resident(), open: descriptors() };
    for (let run = 0; run < 2500; run += 1) await serve(run);
    expect(resident() - before.kiB).toBeLessThan(1024);
    expect(descriptors()).toBe(before.open);
  }, 120_000);

  test('a module of the annotation `warm` is there', async () => {
    const warm = await PythonPrewarmer.launch(['wave', 'no_such_module']);
    try {
      expect(warm.printed()).toMatch(/'no_such_module' of annotation 'warm' was not loaded/);
      const code = 'import sys\nthere = "wave" in sys.modules\ndef main(args):\n  return {"there": there}';
      expect(await warm.result(code)).toEqual({ there: true });
    } finally {
      await warm.end();
    }
  });

  test('a thread that a module has started neither ends the process while it waits nor changes it', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-ticking-'));
    writeFileSync(join(folder, 'ticks.so'), compileObject(ticking));
    const start = 'import ctypes, os\nlibrary = ctypes.CDLL(os.path.join(os.path.dirname(__file__), "ticks.so"))';
    writeFileSync(join(folder, 'ticking.py'), `${start}\nlibrary.start()\n`);
    const warm = await PythonPrewarmer.launch(['ticking'], [folder]);
    try {
      expect(warm.printed()).toBe('');
      const code = 'import ticking\ndef main(args):\n  return {"ticks": ticking.library.ticks()}';
      // The thread would ask for memory by now, and abort as it gets none.
      await sleep(800);
      for (let round = 0; round < 2; round += 1) expect(await warm.result(code)).toEqual({ ticks: 0 });
    } finally {
      await warm.end();
      rmSync(folder, { recursive: true });
    }
  });
});

/** A library with a thread that asks for memory half a second after its start. */
const ticking = `
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
static volatile int count;
static void *tick(void *none) {
  usleep(500000);
  if (mmap(0, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) abort();
  count = 1;
  pause();
  return none;
}
int start(void) {
  pthread_t thread;
  return pthread_create(&thread, 0, tick, 0);
}
int ticks(void) { return count; }
`;

function checkAnswer(given: RuntimeCase, answer: InjectionOutcome): void {
  if (given.exit !== undefined) {
    expect(answer.kind).toBe('exit');
    expect(answer.message).toContain(`exit with status ${given.exit}`);
    return;
  }
  const error = given.initError ?? given.runError;
  if (error === undefined) {
    expect(answer).toMatchObject({ kind: 'result' });
    expect(JSON.parse(answer.result)).toEqual(given.result);
    return;
  }
  expect(answer.kind).toBe(given.initError === undefined ? 'refused' : 'load');
  if (typeof error === 'string') expect(answer.message).toBe(error);
  else expect(answer.message).toMatch(error);
}
