import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';
import { builtPath } from '@gpuwhisk/invoker/host/native-programs';
import { nodeLaunch } from '@gpuwhisk/invoker/runtimes/node-runtime';
import { RuntimeProcess } from './runtime-harness.js';

const runtimesDir = fileURLToPath(new URL('../../../runtimes', import.meta.url));
const launch = nodeLaunch(runtimesDir, process.execPath);
/** Longer than the addon lets pass between runs that follow each other. */
const pauseMs = 200;
/** Runs every 10 ms until something must have come: before the event loop gets its turn in any case, and at all. */
const soon = 25;
const ever = 500;

/** Calls `check` with a runtime right after a number of runs: it waits for the next one outside of its event loop. */
async function afterRuns(code: string, check: (runtime: RuntimeProcess) => Promise<void>): Promise<void> {
  const runtime = new RuntimeProcess(launch);
  try {
    await runtime.init({ code });
    for (let run = 0; run < 10; run += 1) await runtime.run({});
    await check(runtime);
  } finally {
    await runtime.close();
  }
}

const withAddon = existsSync(builtPath('channel.node')) ? test : test.skip;

withAddon.each([
  ['a timer', soon, 'setTimeout(note, 20)'],
  ['an immediate', soon, 'setImmediate(note)'],
  ['an immediate that keeps nothing alive', ever, 'setImmediate(note).unref()'],
  ['an answer of the file system', soon, "require('fs').stat('/', note)"],
  ['a signal', soon, "process.once('SIGUSR2', note); process.kill(process.pid, 'SIGUSR2')"],
  ['the end of a process', ever, "require('child_process').spawn('true').once('exit', note)"],
  [
    'a message of a thread',
    ever,
    `const { Worker } = require('worker_threads');
     new Worker("require('worker_threads').parentPort.postMessage(1)", { eval: true }).once('message', note)`,
  ],
])('%s is not held up by runs that follow each other', async (_, attempts, begin) => {
  const code = `let noted = 0;
    const note = () => { noted += 1; };
    function main(args) {
      if (args.begin) { ${begin} }
      return { noted };
    }`;
  await afterRuns(code, async (runtime) => {
    await runtime.run({ begin: true });
    for (let attempt = 0; attempt < attempts; attempt += 1) {
      const { body } = await runtime.run({});
      if ((body as { noted: number }).noted === 1) return;
      await sleep(10);
    }
    throw new Error('It never came.');
  });
});

withAddon('a timer takes its time after a pause between runs', async () => {
  const code = `function main({ ms }) {
    if (ms === undefined) return {};
    const from = process.hrtime.bigint();
    return new Promise((done) => setTimeout(() => done({ ms: Number(process.hrtime.bigint() - from) / 1e6 }), ms));
  }`;
  await afterRuns(code, async (runtime) => {
    for (const pause of [pauseMs / 4, pauseMs]) {
      await sleep(pause);
      const { body } = await runtime.run({ ms: 40 });
      expect((body as { ms: number }).ms).toBeGreaterThan(38);
    }
  });
});

withAddon('runs that were answered at once and others come one after the other', async () => {
  const code = `
    function main({ later, name }) {
      const seen = { name, id: process.env.__OW_ACTIVATION_ID };
      if (later) return new Promise((done) => setImmediate(() => done({ ...seen, id: process.env.__OW_ACTIVATION_ID })));
      if (name % 7 === 0) return Promise.reject(new Error('seven'));
      return seen;
    }`;
  await afterRuns(code, async (runtime) => {
    for (let name = 1; name <= 60; name += 1) {
      const { body } = await runtime.run({ later: name % 20 === 0, name }, { activation_id: `id${name}` });
      if (name % 7 === 0) expect(body).toMatchObject({ error: { message: 'seven' } });
      else expect(body).toEqual({ name, id: `id${name}` });
    }
  });
});

withAddon('a run that comes while another is under way is refused, and that one is answered', async () => {
  const code = `function main({ ms }) { return ms ? new Promise((done) => setTimeout(done, ms, { ms })) : {}; }`;
  await afterRuns(code, async (runtime) => {
    const first = runtime.run({ ms: pauseMs });
    const second = await runtime.run({});
    expect(second).toMatchObject({ isError: true, body: { error: 'System not ready, status is running.' } });
    expect((await first).body).toEqual({ ms: pauseMs });
    expect((await runtime.run({})).body).toEqual({});
  });
});

withAddon('results of every length arrive whole', async () => {
  await afterRuns('const main = ({ text, times = 1 }) => ({ text: `${text}`.repeat(times) })', async (runtime) => {
    for (const end of ['x', 'é', '€', '😀', '\ud800'])
      for (let length = 16_360; length < 16_390; length += 1) {
        const text = 'x'.repeat(length) + end;
        expect((await runtime.run({ text })).body).toEqual({ text });
      }
    const { body } = await runtime.run({ text: 'é', times: 1_000_000 });
    expect(body).toEqual({ text: 'é'.repeat(1_000_000) });
  });
});

withAddon('the process ends when the invoker is gone', async () => {
  await afterRuns('const main = () => ({})', async (runtime) => {
    runtime.socket.destroy();
    expect(await runtime.exited).toBe(0);
  });
});
