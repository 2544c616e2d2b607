// The data that a function gets about itself and its activation, and how many of its runs are concurrent.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { annotation } from '../support/api-client.js';
import type { ActionOptions } from '../support/api-client.js';
import { kinds, networkLack } from '../support/machine.js';
import { startPlatform } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

let platform: RunningPlatform;
beforeAll(async () => {
  platform = await startPlatform();
});
afterAll(() => platform.stop());

/** Returns the environment at load and at run, and the arguments. */
const mirrors: Record<string, string> = {
  'nodejs:default': `const loaded = { ...process.env };
    function main(args) { return { loaded, env: { ...process.env }, args }; }`,
  'python:default': `import os
loaded = dict(os.environ)
def main(args):
  return {"loaded": loaded, "env": dict(os.environ), "args": args}`,
};

interface Mirrored {
  loaded: Record<string, string>;
  env: Record<string, string>;
  args: object;
}

let made = 0;
async function mirrored(kind: string, options: ActionOptions = {}, payload = {}) {
  const name = `mirror-${++made}`;
  await platform.api.putAction(name, mirrors[kind] ?? '', { kind, ...options });
  const { body } = await platform.api.invoke(name, payload);
  return { seen: body.response.result as unknown as Mirrored, record: body };
}

describe.each(kinds.map(String))('%s:', (kind) => {
  test('the variables of an activation', async () => {
    const before = Date.now();
    const { seen, record } = await mirrored(kind, { limits: { timeout: 7000 } });
    const about = {
      __OW_API_HOST: networkLack === undefined ? expect.stringMatching(/^http:\/\/10(\.\d+){3}:\d+$/) : platform.url,
      __OW_NAMESPACE: 'guest',
      __OW_ACTION_NAME: `/guest/${record.name}`,
      __OW_ACTION_VERSION: record.version,
      __OW_ACTIVATION_ID: record.activationId,
      __OW_TRANSACTION_ID: expect.stringMatching(/^[A-Za-z0-9]{32}$/),
      __OW_DEADLINE: expect.stringMatching(/^\d{13}$/),
    };
    expect(seen.env).toMatchObject(about);
    expect(seen.loaded).toMatchObject(about);
    const deadlineMs = Number(seen.env.__OW_DEADLINE);
    expect(deadlineMs).toBeGreaterThanOrEqual(before + 7000);
    expect(deadlineMs).toBeLessThanOrEqual(Date.now() + 7000);
    const next = (await platform.api.invoke(record.name)).body;
    const then = next.response.result as unknown as Mirrored;
    expect(then.env.__OW_ACTIVATION_ID).toBe(next.activationId);
    expect(then.loaded.__OW_ACTIVATION_ID).toBe(record.activationId);
    expect(Number(then.env.__OW_DEADLINE)).toBeGreaterThanOrEqual(deadlineMs);
  });

  test('nothing of the platform is in the environment', async () => {
    const { seen } = await mirrored(kind);
    const names = Object.keys(seen.env).filter((name) => !name.startsWith('__OW_'));
    // Where the function is injected, its process has those of its libraries.
    const ofLibraries = ['JE_ARROW_MALLOC_CONF', 'OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS'];
    expect(['HOME', 'LANG', 'LC_CTYPE', 'PATH', 'TMPDIR', ...ofLibraries]).toEqual(expect.arrayContaining(names));
  });

  test('the key only where the annotation asks for it', async () => {
    expect((await mirrored(kind)).seen.env).not.toHaveProperty('__OW_API_KEY');
    const { seen } = await mirrored(kind, { annotations: { 'provide-api-key': true } });
    expect(seen.env.__OW_API_KEY).toBe(platform.auth);
    expect(seen.loaded.__OW_API_KEY).toBe(platform.auth);
    expect((await mirrored(kind, { annotations: { 'provide-api-key': false } })).seen.env).not.toHaveProperty(
      '__OW_API_KEY',
    );
  });

  test('arguments override parameters, and init parameters go to the environment', async () => {
    const parameters: ActionOptions['parameters'] = [
      { key: 'name', value: 'nobody' },
      { key: 'place', value: { city: 'Ulm', zip: [89073] } },
      { key: 'MODE', value: 'fast', init: true },
      { key: 'SETTINGS', value: { depth: 3 }, init: true },
    ];
    const { seen } = await mirrored(kind, { parameters }, { name: 'Ada', extra: null });
    expect(seen.args).toEqual({ name: 'Ada', place: { city: 'Ulm', zip: [89073] }, extra: null });
    expect(seen.loaded).toMatchObject({ MODE: 'fast', SETTINGS: '{"depth":3}' });
  });

  test('a record tells its first run from the next', async () => {
    const { record } = await mirrored(kind);
    const next = (await platform.api.invoke(record.name)).body;
    expect(annotation(record, 'initTime')).toBeGreaterThanOrEqual(0);
    expect(annotation(next, 'initTime')).toBeUndefined();
    expect(annotation(next, 'waitTime')).toBeGreaterThanOrEqual(0);
    expect(annotation(next, 'path')).toBe(`guest/${record.name}`);
    expect(annotation(next, 'kind')).toMatch(kind.startsWith('nodejs') ? /^nodejs:\d+$/ : /^python:3\.\d+$/);
    expect(annotation(next, 'limits')).toEqual({ timeout: 60_000, memory: 256, logs: 10, concurrency: 1 });
  });

  test('a new version of the code is what the next invocation runs', async () => {
    const returning = (n: number): string =>
      kind.startsWith('nodejs') ? `function main() { return { n: ${n} }; }` : `def main(args):\n  return {"n": ${n}}`;
    for (let n = 0; n < 5; n++) {
      await platform.api.putAction('changing', returning(n), { kind });
      expect((await platform.api.invokeForResult('changing')).body).toEqual({ n });
    }
  });
});

/** Answers once as many runs are in progress in this process as `together` says. */
const meeting: Record<string, string> = {
  'nodejs:default': `let waiting = [];
    function main({ together }) {
      return new Promise((done) => {
        waiting.push(done);
        if (waiting.length < together) return;
        for (const one of waiting.splice(0)) one({ met: together, pid: process.pid });
      });
    }`,
  'python:default': `import os, threading
condition = threading.Condition()
arrived = 0
def main(args):
  global arrived
  with condition:
    arrived += 1
    condition.notify_all()
    condition.wait_for(lambda: arrived % (args["together"] + 1) == 0 or arrived >= args["together"])
  return {"met": args["together"], "pid": os.getpid()}`,
};

describe.each(kinds.map(String))('%s:', (kind) => {
  test('with a concurrency limit runs share a container', async () => {
    await platform.api.putAction('meeting', meeting[kind] ?? '', { kind, limits: { concurrency: 10, timeout: 5000 } });
    expect((await platform.api.invokeForResult('meeting', { together: 1 })).status).toBe(200);
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => platform.api.invokeForResult('meeting', { together: 10 })),
    );
    expect(answers.map(({ status, body }) => ({ status, met: body.met }))).toEqual(
      answers.map(() => ({ status: 200, met: 10 })),
    );
  });

  test('without one no two do', async () => {
    await platform.api.putAction('alone', meeting[kind] ?? '', { kind, limits: { timeout: 1000 } });
    const answers = await Promise.all(Array.from({ length: 2 }, () => platform.api.invoke('alone', { together: 2 })));
    for (const { status, body } of answers) {
      expect({ status, result: body.response.result }).toEqual({
        status: 502,
        result: { error: 'The action exceeded its time limits of 1000 milliseconds.' },
      });
    }
  });
});

test('one that exits takes those with it that share its container, and nobody else', async () => {
  const code = `function main({ leave }) {
    if (leave) setTimeout(() => process.exit(1), 100);
    return new Promise(() => {});
  }`;
  await platform.api.putAction('shared', 'function main() { return {}; }', { limits: { concurrency: 5 } });
  await platform.api.putAction('brittle', code, { limits: { concurrency: 5, timeout: 5000 } });
  const answers = await Promise.all([
    ...[false, false, true].map((leave) => platform.api.invoke('brittle', { leave })),
    platform.api.invoke('shared'),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([502, 502, 502, 200]);
});
