// Functions that fail in every way: each is answered as OpenWhisk answers it, and leaves the platform healthy.
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { hasNative } from '@gpuwhisk/invoker/runtimes/native-runtime';
import { annotation, logTexts } from '../support/api-client.js';
import { badFunctions } from './bad-functions.js';
import type { BadFunction } from './bad-functions.js';
import { hasLauncher, hasPython, kinds } from '../support/machine.js';
import { alive, descendants, holdings, remainingCgroups, sandboxCount } from '../support/process-traces.js';
import type { Trace } from '../support/process-traces.js';
import { prewarmersOf } from '../support/stem-cells.js';
import { startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

let platform: RunningPlatform;
/** Every process seen below the platform, by its number and start. */
const seen = new Map<string, Trace>();
let sampler: NodeJS.Timeout;
let before: { openFiles: number; memoryMiB: number; processes: number; sandboxes: number };

/** Idle containers are removed after a second, so that a test can check that its containers end. */
const idleContainerMs = 1000;
const python = hasPython ? test : test.skip;
const developerErrorLine = 'The action did not initialize or run as expected. Log data might be missing.';

beforeAll(async () => {
  const flags = ['--set', `pool.idleContainerMs=${idleContainerMs}`];
  platform = await startPlatform({ flags, env: { PIP_NO_INDEX: '1' } });
  await platform.api.putAction('hello', 'function main({ name }) { return { greeting: `Hello, ${name}!` }; }');
  for (let i = 0; i < 20; i++) await platform.api.invoke('hello', { name: 'you' });
  // Some of the functions have this memory size, others run several at once: both have stem cells after their first
  // container.
  for (const kind of kinds) {
    const code = kind.startsWith('python') ? 'def main(args):\n  return {}' : 'function main() { return {}; }';
    await platform.api.putAction('small', code, { kind, limits: { memory: 128 } });
    await platform.api.invoke('small');
  }
  await platform.api.putAction('wide', 'function main() { return {}; }', { limits: { concurrency: 2 } });
  await platform.api.invoke('wide');
  await until('stem cells alone are there', () => sandboxCount(platform) === stemCells(), 20_000);
  await until('they are ready', async () => (await prewarmersOf(platform)).length === stemCells(), 20_000);
  before = state();
  sampler = setInterval(() => {
    for (const trace of descendants(platform.pid)) seen.set(`${trace.pid} ${trace.started}`, trace);
  }, 100);
});
afterAll(async () => {
  clearInterval(sampler);
  await platform.stop();
});
afterEach(async () => {
  expect(await platform.api.invokeForResult('hello', { name: 'you' })).toMatchObject({
    status: 200,
    body: { greeting: 'Hello, you!' },
  });
});

const MB = 1024 * 1024;
/** Launchers that wait for a sandbox, each with its first process. */
const spareProcesses = 4;

/**
 * Stem cells of runtimes.json: two of Node.js, one of Python, one for native functions. The runs in beforeAll add one
 * for each kind, and one more.
 */
const stemCells = (): number => 2 + Number(hasPython) + Number(hasNative()) + kinds.length + 1;

function state(): typeof before {
  return {
    ...holdings(platform.pid),
    processes: descendants(platform.pid).length,
    sandboxes: sandboxCount(platform),
  };
}

const families = kinds.map((kind) => kind.replace(':default', ''));
const ofFamily = (family: string, confined: boolean): BadFunction[] =>
  badFunctions.filter((one) => one.kind === family && (one.confined ?? false) === confined);

describe.each(families)('%s:', (family) => {
  test.each(ofFamily(family, false))('$name', check);
  (hasLauncher ? test : test.skip).each(ofFamily(family, true))('$name', check);
});

async function check(given: BadFunction): Promise<void> {
  const name = `bad-${badFunctions.indexOf(given)}`;
  await platform.api.putAction(name, given.code, { kind: `${given.kind}:default`, ...given.options });
  const { status, record } = await platform.api.run(name);
  const wanted =
    typeof given.result === 'string'
      ? { error: given.result }
      : given.result instanceof RegExp
        ? { error: expect.stringMatching(given.result) }
        : given.result;
  expect({ status, response: record.response }).toEqual({
    status: given.http,
    response: {
      status: given.status,
      success: given.status === 'success',
      result: wanted,
      ...(record.response.size === undefined ? {} : { size: expect.any(Number) }),
    },
  });
  expect(annotation(record, 'timeout')).toBe(given.timeout ?? false);
  const texts = logTexts(record);
  if (given.status === 'action developer error') expect(texts.pop()).toBe(developerErrorLine);
  if (given.logs !== undefined) expect(texts).toEqual(given.logs);
}

test('a list is answered bare', async () => {
  await platform.api.putAction('list', 'function main() { return [1, { a: 2 }]; }');
  expect(await platform.api.request('POST', '_/actions/list?blocking=true')).toMatchObject({
    status: 200,
    body: [1, { a: 2 }],
  });
});

const unreadable = 'The action did not produce a valid JSON or JSON Array response: ';
const unexpectedExit = 'The action did not produce a valid response and exited unexpectedly.';

/** Sends frames of the runtime's protocol, bypassing the runtime; 2 is the number of the run that follows the init. */
const forging = (frames: string): string => `function main() {
  const frame = (type, id, text) => {
    const bytes = Buffer.alloc(9 + Buffer.byteLength(text));
    bytes.writeUInt32LE(bytes.length - 9, 0);
    bytes[4] = type;
    bytes.writeUInt32LE(id, 5);
    bytes.write(text, 9);
    return bytes;
  };
  const nested = (depth) => '{"error":' + '['.repeat(depth) + ']'.repeat(depth) + '}';
  for (let bytes = Buffer.concat([${frames}]); bytes.length > 0; ) {
    try {
      bytes = bytes.subarray(require('fs').writeSync(3, bytes));
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
    }
  }
  return new Promise(() => {});
}`;

test.each<[string, string, unknown]>([
  [
    'answers what nests too deeply',
    `frame(4, 2, nested(50000)), frame(6, 2, '{}')`,
    expect.stringContaining(unreadable),
  ],
  [
    'fails with what nests too deeply',
    `frame(5, 2, nested(50000)), frame(6, 2, '{}')`,
    expect.stringContaining(unreadable),
  ],
  ['answers no JSON', `frame(4, 2, 'no'), frame(6, 2, '{}')`, `${unreadable}no`],
  ['answers what was not asked', `frame(4, 77, '{}')`, unexpectedExit],
  ['speaks another protocol', `Buffer.from('GET / HTTP/1.1\\r\\n\\r\\n')`, unexpectedExit],
  ['announces four gigabytes', `Buffer.alloc(9, 255)`, unexpectedExit],
])('a function that forges an answer: %s', async (name, frames, error) => {
  // Concurrency 2 excludes a pair, in which the run would not be the second request.
  await platform.api.putAction('forger', forging(frames), { limits: { timeout: 5000, concurrency: 2 } });
  const { status, record } = await platform.api.run('forger');
  expect({ name, status, response: record.response }).toMatchObject({
    status: 502,
    response: { status: 'action developer error', result: { error } },
  });
});

test('what 100 MB print is cut at the limit', async () => {
  const code = `function main() {
    const text = ('x'.repeat(1023) + '\\n').repeat(1024);
    for (let i = 0; i < 100; i++) require('fs').writeSync(1, text);
    return { done: true };
  }`;
  await platform.api.putAction('chatty', code);
  const { status, record } = await platform.api.run('chatty');
  expect({ status, response: record.response }).toMatchObject({ status: 200, response: { result: { done: true } } });
  const bytes = record.logs.reduce((sum, line) => sum + line.length + 1, 0);
  expect(bytes).toBeGreaterThan(9.9 * MB);
  expect(bytes).toBeLessThan(10 * MB + 500);
  expect(logTexts(record).at(-1)).toBe(
    `Logs were truncated because the total bytes size exceeds the limit of ${10 * MB} bytes.`,
  );
});

python('the same in Python, with a limit of 1 MB', async () => {
  const code = `def main(args):
  line = "x" * 1023
  for _ in range(20000):
    print(line)
  return {"done": True}`;
  await platform.api.putAction('chatty-python', code, { kind: 'python:default', limits: { logs: 1 } });
  const { status, record } = await platform.api.run('chatty-python');
  expect({ status, result: record.response.result }).toEqual({ status: 200, result: { done: true } });
  expect(logTexts(record).at(-1)).toBe(
    `Logs were truncated because the total bytes size exceeds the limit of ${MB} bytes.`,
  );
});

test('nothing of all that is left behind', async () => {
  const tenMegabytes = badFunctions.findIndex(({ name }) => name === 'a function that returns 10 MB');
  // Runs several times, so that leaked memory adds up.
  for (let i = 0; i < 5; i++) await platform.api.run('chatty');
  for (let i = 0; i < 15; i++) await platform.api.run(`bad-${tenMegabytes}`);
  await until('idle containers are gone', () => sandboxCount(platform) <= before.sandboxes, 30_000);
  // The number of launchers that wait for a sandbox changes with the number of starts.
  await until('their processes are gone', () => descendants(platform.pid).length <= before.processes + spareProcesses);
  const living = alive([...seen.values()]);
  const dead = [...seen.values()].filter((trace) => !living.includes(trace));
  expect(dead.length).toBeGreaterThan(badFunctions.length);
  const stillNeeded = new Set(living.flatMap(({ cgroups }) => cgroups));
  // A control group is removed after its last process.
  await until(
    'their control groups are gone',
    () => remainingCgroups(dead).every((folder) => stillNeeded.has(folder)),
    5000,
  );
  const after = state();
  // With them, a thread for records with long logs has been started.
  expect(after.openFiles).toBeLessThanOrEqual(before.openFiles + 15);
  // Garbage is returned when the heap is checked the next time.
  await until('the memory is given back', () => state().memoryMiB < before.memoryMiB + 300, 60_000);
  expect(platform.output()).not.toMatch(/"level":(50|60)/);
});
