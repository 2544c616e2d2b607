// Changes of a process's state by its function, as the kernel shows them.
import { afterEach, expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { observeProcessState } from '@gpuwhisk/invoker/containers/sandbox/process-state';

/** Runs each code that is sent to it, in a scope with `require`, and answers. */
const program = `process.on('message', async (text) => {
  try { await (0, eval)('(async (require) => {' + text + '})')(require); process.send('done'); }
  catch (error) { process.send(String(error)); }
});
require('fs/promises').stat('/').then(() => process.send('ready'));`;

const started: ChildProcess[] = [];
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL');
});

async function start(): Promise<{ pid: number; run(text: string): Promise<void> }> {
  const flags = ['--no-memory-reducer', '-e', program];
  const child = spawn(process.execPath, flags, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  started.push(child);
  await once(child, 'message');
  return {
    pid: child.pid ?? 0,
    async run(text) {
      child.send(text);
      expect(await once(child, 'message')).toEqual(['done', undefined]);
    },
  };
}

// The first of these calls loads the thread pool and late modules.
const settled = `await require('fs/promises').stat('/'); require('child_process'); require('worker_threads'); void fetch;`;

test('nothing differs while a process rests, nor after work that left nothing', async () => {
  const { pid, run } = await start();
  await run(settled);
  const look = await observeProcessState(pid, systemClock);
  expect(await look?.differences()).toEqual([]);
  await run(`for (let i = 0; i < 1e5; i++) JSON.parse('{"a":1}')`);
  expect(await look?.differences()).toEqual([]);
});

test('a lock that the first thread waits for at its start is not its rest', async () => {
  const { pid, run } = await start();
  await run(settled);
  // Another thread lets go of the lock after 60 ms.
  await run(`const shared = new Int32Array(new SharedArrayBuffer(12));
    globalThis.other = new (require('worker_threads').Worker)(
      "const { workerData } = require('worker_threads');" +
      "Atomics.wait(workerData, 1, 0); Atomics.wait(workerData, 2, 0, 60); Atomics.notify(workerData, 0);" +
      "setInterval(() => {}, 1e9)",
      { eval: true, workerData: shared });
    await require('events').once(other, 'online');
    setImmediate(() => {
      Atomics.store(shared, 1, 1);
      Atomics.notify(shared, 1);
      Atomics.wait(shared, 0, 0);
    })`);
  const look = await observeProcessState(pid, systemClock);
  await run('');
  expect(await look?.differences()).toEqual([]);
});

test.each([
  ['a timer', `setTimeout(() => {}, 60000).unref()`, 'a thread that does not wait as before'],
  ['a repeated timer', `setInterval(() => {}, 1)`, 'a thread that does not wait as before'],
  ['a loop', `setImmediate(() => { for (;;); })`, 'a thread that does not wait as before'],
  [
    'a wait for something else',
    `setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0))`,
    'a thread that does not wait as before',
  ],
  ['a descriptor', `require('fs').openSync('/etc/hostname')`, 'descriptors'],
  ['a descriptor in place of another', `require('fs').closeSync(0); require('fs').openSync('/etc')`, 'descriptors'],
  ['a thread', `new (require('worker_threads').Worker)('setInterval(() => {}, 1e6)', { eval: true })`, 'threads'],
  ['a process', `require('child_process').spawn('/bin/sleep', ['60'], { stdio: 'ignore' })`, 'processes'],
])('%s is seen', async (_, text, expected) => {
  const { pid, run } = await start();
  await run(settled);
  const look = await observeProcessState(pid, systemClock);
  await run(text);
  expect(await look?.differences()).toContain(expected);
});

test('a process that has ended, and one that has several below it, cannot be looked at', async () => {
  const { pid, run } = await start();
  const look = await observeProcessState(pid, systemClock);
  const [child] = started as [ChildProcess];
  child.kill('SIGKILL');
  await once(child, 'exit');
  expect(await look?.differences()).toEqual([expect.stringMatching(/^processes that cannot be seen/)]);
  expect(await observeProcessState(pid, systemClock)).toBeUndefined();
  const family = await start();
  const sleep = `require('child_process').spawn('/bin/sleep', ['60'], { stdio: 'ignore' })`;
  await family.run(`${sleep}; ${sleep}`);
  expect(await observeProcessState(family.pid, systemClock)).toBeUndefined();
  await expect(run('')).rejects.toThrow();
});
