// More functions than memory holds, and idle functions: all run, in containers that are added and removed.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { annotation } from '../support/api-client.js';
import { hasLauncher } from '../support/machine.js';
import { descendants, sandboxCount } from '../support/process-traces.js';
import { startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const containers = 4;
const small = { limits: { memory: 128 } };
const sandboxed = hasLauncher ? test : test.skip;
let platform: RunningPlatform;

beforeAll(async () => {
  const settings = ['pool.pauseGraceMs=300', 'pool.idleContainerMs=4000'].flatMap((one) => ['--set', one]);
  const flags = ['--memory', String(128 * containers), '--stem-cells', 'false', ...settings];
  platform = await startPlatform({ flags });
  const code = `let ticks = 0, runs = 0;
    setInterval(() => ticks++, 10);
    function main() { return { ticks, runs: ++runs, pid: process.pid }; }`;
  await platform.api.putAction('ticking', code, small);
});
afterAll(() => platform.stop());

test('actions that do not fit at once take turns', async () => {
  const actions = Array.from({ length: 3 * containers }, (_, i) => `turn-${i}`);
  for (const name of actions)
    await platform.api.putAction(name, `function main() { return { name: '${name}' }; }`, small);
  let most = 0;
  const sampler = setInterval(() => (most = Math.max(most, sandboxCount(platform))), 20);
  for (let round = 0; round < 3; round++) {
    const answers = await Promise.all(actions.map((name) => platform.api.invokeForResult(name)));
    expect(answers.map(({ status, body }) => ({ status, ...body }))).toEqual(
      actions.map((name) => ({ status: 200, name })),
    );
  }
  clearInterval(sampler);
  expect(most).toBeGreaterThan(1);
  expect(most).toBeLessThanOrEqual(containers);
});

test('an action that asks for more than there is fails with the reason', async () => {
  await platform.api.putAction('huge', 'function main() { return {}; }', { limits: { memory: 1024 } });
  const { status, record } = await platform.api.run('huge');
  expect({ status, response: record.response }).toEqual({
    status: 500,
    response: {
      status: 'whisk internal error',
      success: false,
      result: { error: 'Failed to provision resources to run the action.' },
    },
  });
  expect(annotation(record, 'start')).toBe('none');
  expect(record.logs).toEqual([expect.stringContaining('1024 MB, is more than this invoker has, 512 MB')]);
});

sandboxed('a function that rests does not run, and goes on where it was', async () => {
  const first = (await platform.api.invokeForResult('ticking')).body;
  await new Promise((done) => setTimeout(done, 3000));
  const second = (await platform.api.invokeForResult('ticking')).body;
  expect(second).toMatchObject({ runs: 2, pid: first.pid });
  // Three seconds are 300 ticks; the process was awake for the grace and one interval of the pool's sweep.
  expect(Number(second.ticks) - Number(first.ticks)).toBeLessThan(200);
});

test('containers that idle for long are removed', async () => {
  const runtimes = () => descendants(platform.pid).filter(({ command }) => command.includes('main.cjs'));
  await platform.api.invoke('ticking');
  expect(runtimes().length).toBeGreaterThan(0);
  await until('no container is left', () => sandboxCount(platform) === 0, 15_000);
  await until('nor a process of one', () => runtimes().length === 0);
  expect((await platform.api.invokeForResult('ticking')).body).toMatchObject({ runs: 1 });
});
