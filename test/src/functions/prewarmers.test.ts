// Containers that wait for a future action: functions run in the containers that the platform lists.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Prewarmer } from '@gpuwhisk/common/prewarmer';
import { annotation } from '../support/api-client.js';
import { hasPython } from '../support/machine.js';
import { prewarmersOf } from '../support/stem-cells.js';
import { startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const python = hasPython ? test : test.skip;
let platform: RunningPlatform;

const prewarmers = async (wanted: (one: Prewarmer) => boolean): Promise<Prewarmer[]> =>
  (await prewarmersOf(platform)).filter(wanted);

beforeAll(async () => {
  platform = await startPlatform({});
});
afterAll(() => platform.stop());

test.each([
  ['nodejs:default', 'nodejs:', 'function main() { return { pid: process.pid }; }'],
  ['python:default', 'python:', 'import os\ndef main(args):\n  return {"pid": os.getpid()}'],
])('a new action of %s runs in a process that was listed before', async (kind, prefix, code) => {
  if (kind.startsWith('python') && !hasPython) return;
  const isOfKind = (one: Prewarmer): boolean => one.kind.startsWith(prefix) && one.memoryMiB === 256;
  await until('a container is ready', async () => (await prewarmers(isOfKind)).length > 0, 20_000);
  const listed = await prewarmers(isOfKind);
  await platform.api.putAction('listed', code, { kind });
  const { status, body } = await platform.api.invokeForResult('listed');
  expect(status).toBe(200);
  expect(listed.map(({ pid }) => pid)).toContain(body.pid);
});

python('an injected function may start processes, and another of its namespace runs after it', async () => {
  const waiting = (one: Prewarmer): boolean => one.kind.startsWith('python:') && one.memoryMiB === 256;
  await until('a container is ready', async () => (await prewarmers(waiting)).length > 0, 20_000);
  const code = `import multiprocessing, os, subprocess
def work(queue):
  queue.put(os.getppid())
def main(args):
  queue = multiprocessing.SimpleQueue()
  process = multiprocessing.Process(target=work, args=(queue,))
  process.start(); process.join()
  out = subprocess.check_output("echo $__OW_ACTION_NAME | rev", shell=True, text=True)
  return {"own": queue.get() == os.getpid(), "out": out}`;
  await platform.api.putAction('starts', code, { kind: 'python:default' });
  for (let run = 0; run < 2; run += 1) {
    const { body } = await platform.api.invokeForResult('starts');
    expect(body).toEqual({ own: true, out: 'strats/tseug/\n' });
  }
  await platform.api.putAction('next', 'def main(args):\n  return args', { kind: 'python:default' });
  expect((await platform.api.invokeForResult('next', { a: 1 })).body).toEqual({ a: 1 });
});

python('after the first start of an action that loads modules ahead, one with these is ready', async () => {
  const code = 'import sys\nbefore = "wave" in sys.modules\ndef main(args):\n  return {"before": before}';
  const options = { kind: 'python:default', annotations: { warm: { imports: ['wave'] } } };
  await platform.api.putAction('loads', code, options);
  expect((await platform.api.invokeForResult('loads')).status).toBe(200);
  const isLoaded = (one: Prewarmer): boolean => one.imports.includes('wave');
  await until('one has it loaded', async () => (await prewarmers(isLoaded)).length > 0, 20_000);
  await platform.api.putAction('loads2', code, options);
  expect((await platform.api.invokeForResult('loads2')).body).toEqual({ before: true });
});

test.each(['nodejs:default', 'python:default'])(
  'an action of %s that loads a model has another container with it at hand after its first start',
  async (kind) => {
    if (kind.startsWith('python') && !hasPython) return;
    const code = kind.startsWith('python')
      ? 'import time, uuid\nmodel = []\ndef load():\n  model.append(str(uuid.uuid4()))\ndef main(args):\n  time.sleep(args.get("s", 0))\n  return {"model": model}'
      : `const model = [];
         function load() { model.push(crypto.randomUUID()); }
         const main = ({ s = 0 }) => new Promise((done) => setTimeout(done, s * 1000, { model }));`;
    await platform.api.putAction('model', code, { kind, annotations: { warm: { entry: 'load' } } });
    const first = await platform.api.run('model');
    expect(first.record.response.result).toEqual({ model: [expect.any(String)] });
    expect(annotation(first.record, 'initTime')).toEqual(expect.any(Number));
    // While the first container is busy, the run finds the other one, which needs no init.
    await until('another is ready', async () => {
      const both = await Promise.all([platform.api.run('model', { s: 0.5 }), platform.api.run('model', { s: 0.5 })]);
      const models = both.map(({ record }) => record.response.result.model as string[]);
      expect(models.map(({ length }) => length)).toEqual([1, 1]);
      return (
        models[0]?.[0] !== models[1]?.[0] && both.every(({ record }) => annotation(record, 'initTime') === undefined)
      );
    });
  },
);

test('who is no operator may not see them', async () => {
  expect((await platform.api.request('GET', '../admin/prewarmers')).status).toBe(403);
});
