// Output of functions, and its log lines.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { logTexts } from '../support/api-client.js';
import type { ApiActivation } from '../support/api-client.js';
import { hasPython } from '../support/machine.js';
import { startPlatform } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

let platform: RunningPlatform;
const python = hasPython ? test : test.skip;
const MB = 1024 * 1024;

beforeAll(async () => {
  platform = await startPlatform();
});
afterAll(() => platform.stop());

/** Creates an action, runs it, and returns its record. */
async function recordOf(
  code: string,
  options: { kind?: string; image?: string; logs?: number; payload?: object } = {},
) {
  const { kind = 'nodejs:default', image, logs, payload } = options;
  await platform.api.putAction('printer', code, {
    kind,
    ...(image !== undefined && { image }),
    ...(logs === undefined ? {} : { limits: { logs } }),
  });
  const { record } = await platform.api.run('printer', { ...payload });
  return record;
}

/** `[stream, text]` of each line; fails for a line that is not in OpenWhisk's format. */
function linesOf(record: ApiActivation): [string, string][] {
  return record.logs.map((line) => {
    const [, time = '', stream = '', text = ''] = /^(.{30}) (stdout|stderr): ([^]*)$/.exec(line) ?? [];
    expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$/);
    expect(Date.parse(time.replace(/\d{6}Z$/, 'Z'))).toBeGreaterThanOrEqual(record.start - 1000);
    expect(Date.parse(time.replace(/\d{6}Z$/, 'Z'))).toBeLessThanOrEqual(record.end + 1000);
    return [stream, text];
  });
}

test('lines of both streams have their time and the name of the stream', async () => {
  const record = await recordOf(`function main() {
    console.log('one');
    console.error('two');
    console.log('three\\nfour\\n');
    process.stdout.write('no newline at the end');
    return {};
  }`);
  const lines = linesOf(record);
  expect(lines.filter(([stream]) => stream === 'stdout').map(([, text]) => text)).toEqual([
    'one',
    'three',
    'four',
    '',
    'no newline at the end',
  ]);
  expect(lines.filter(([stream]) => stream === 'stderr').map(([, text]) => text)).toEqual(['two']);
});

python('and so in Python, whether or not it flushes', async () => {
  const record = await recordOf(
    `import os, sys, subprocess
def main(args):
  print("one")
  print("two", file=sys.stderr)
  subprocess.run(["/bin/echo", "three"])
  sys.stdout.write("four")
  return {}`,
    { kind: 'python:default' },
  );
  expect(linesOf(record).map((line) => line.join(' '))).toEqual(
    expect.arrayContaining(['stdout one', 'stderr two', 'stdout three', 'stdout four']),
  );
});

const byPath = {
  nodejs: `const fs = require('fs'); const { execSync } = require('child_process');
    function main() {
      fs.writeFileSync('/dev/stdout', 'one\\n');
      fs.appendFileSync('/dev/stderr', 'two\\n');
      execSync('echo three > /dev/stdout', { stdio: 'inherit' });
      fs.closeSync(fs.openSync('/proc/self/fd/2', 'w'));
      return {};
    }`,
  python: `import subprocess
def main(args):
  with open("/dev/stdout", "w") as out: out.write("one\\n")
  with open("/dev/stderr", "a") as out: out.write("two\\n")
  subprocess.run(["/bin/sh", "-c", "echo three > /dev/stdout"])
  return {}`,
};
const printedByPath = ['stderr two', 'stdout one', 'stdout three'];

test('what is printed by the paths of the streams is logged', async () => {
  expect(
    linesOf(await recordOf(byPath.nodejs))
      .map((line) => line.join(' '))
      .sort(),
  ).toEqual(printedByPath);
});

python('and so in Python, by the paths', async () => {
  const record = await recordOf(byPath.python, { kind: 'python:default' });
  expect(
    linesOf(record)
      .map((line) => line.join(' '))
      .sort(),
  ).toEqual(printedByPath);
});

test('and so from an executable, by the path of its errors', async () => {
  const code = '#!/bin/sh\necho one\necho two > /dev/stderr\necho three > /proc/self/fd/2\necho {}\n';
  const record = await recordOf(code, { kind: 'blackbox', image: 'openwhisk/dockerskeleton' });
  expect(
    linesOf(record)
      .map((line) => line.join(' '))
      .sort(),
  ).toEqual(['stderr three', 'stderr two', 'stdout one']);
});

test('an activation has its own lines, and what the start printed is in the first', async () => {
  const code = `console.log('loading'); let runs = 0;
    function main() { runs++; console.log('run', runs); return { runs }; }`;
  await platform.api.putAction('counter', code);
  const texts = [];
  for (let i = 0; i < 3; i++) texts.push(logTexts((await platform.api.run('counter')).record));
  expect(texts).toEqual([['loading', 'run 1'], ['run 2'], ['run 3']]);
});

test('text of every script, in input, output and logs', async () => {
  const text = 'Grüße, 世界, мир, 🌍, \u0000\u0007\t" \\ \u2028 é e\u0301';
  const record = await recordOf(
    'function main({ text }) { console.log(text); return { text, copy: [...text].join("") }; }',
    {
      payload: { text },
    },
  );
  expect(record.response.result).toEqual({ text, copy: text });
  expect(logTexts(record)).toEqual([text]);
  if (!hasPython) return;
  const inPython = await recordOf('def main(args):\n  print(args["text"])\n  return {"text": args["text"]}', {
    kind: 'python:default',
    payload: { text },
  });
  expect(inPython.response.result).toEqual({ text });
  expect(logTexts(inPython)).toEqual([text]);
});

const flood = `function main({ bytes }) {
  const block = '123456789abcdef\\n'.repeat(64);
  for (let sent = 0; sent < bytes; sent += block.length) require('fs').writeSync(1, block);
  return { done: true };
}`;

test('a limit of 0 keeps nothing', async () => {
  const record = await recordOf(flood, { logs: 0, payload: { bytes: 1000 } });
  expect({ logs: record.logs, result: record.response.result }).toEqual({ logs: [], result: { done: true } });
});

test('what exceeds the limit is cut, and the last line says so', async () => {
  const record = await recordOf(flood, { logs: 1, payload: { bytes: 1.1 * MB } });
  expect(record.response.success).toBe(true);
  const lines = linesOf(record);
  expect(lines.at(-1)).toEqual([
    'stderr',
    `Logs were truncated because the total bytes size exceeds the limit of ${MB} bytes.`,
  ]);
  const bytes = record.logs.slice(0, -1).reduce((sum, line) => sum + line.length + 1, 0);
  expect(bytes).toBeGreaterThan(MB - 100);
  expect(bytes).toBeLessThanOrEqual(MB);
});

test('the next activation of a chatty function starts with an empty log', async () => {
  await platform.api.putAction('moody', `function main({ bytes }) { console.log('x'.repeat(bytes)); return {}; }`, {
    limits: { logs: 1 },
  });
  await platform.api.run('moody', { bytes: 3 * MB });
  const { record } = await platform.api.run('moody', { bytes: 3 });
  expect(logTexts(record)).toEqual(['xxx']);
});

test('a long line is one line', async () => {
  const record = await recordOf(`function main() { console.log('x'.repeat(500_000)); return {}; }`);
  expect(logTexts(record).map((text) => text.length)).toEqual([500_000]);
});

test('logs and result have resources of their own', async () => {
  const { activationId } = await recordOf(`function main() { console.log('hi'); return { a: 1 }; }`);
  const logs = await platform.api.request('GET', `_/activations/${activationId}/logs`);
  expect(logs).toMatchObject({ status: 200, body: { logs: [expect.stringMatching(/ stdout: hi$/)] } });
  const result = await platform.api.request('GET', `_/activations/${activationId}/result`);
  expect(result).toMatchObject({
    status: 200,
    body: { result: { a: 1 }, status: 'success', success: true, size: '{"a":1}'.length },
  });
});

test('a blocking answer does not wait for them', async () => {
  await platform.api.putAction('printer', `function main() { console.log('hi'); return {}; }`);
  const { body } = await platform.api.invoke('printer');
  expect(body.logs).toEqual([]);
  expect(logTexts(await platform.api.record(body.activationId))).toEqual(['hi']);
});

/** Events of a stream of logs: their names, and the texts of their lines. */
async function* followed(activationId: string): AsyncGenerator<[event: string, texts: string[]]> {
  const answer = await fetch(`${platform.url}/api/v1/namespaces/_/activations/${activationId}/logs?follow=true`, {
    headers: { authorization: `Basic ${Buffer.from(platform.auth).toString('base64')}` },
  });
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
  let text = '';
  for await (const chunk of answer.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    for (let end = text.indexOf('\n\n'); end !== -1; end = text.indexOf('\n\n')) {
      const [, event = '', data = ''] = /^event: (\w+)\ndata: (.*)$/.exec(text.slice(0, end)) ?? [];
      text = text.slice(end + 2);
      const { lines = [] } = JSON.parse(data) as { lines?: string[] };
      if (event !== 'beat') yield [event, lines.map((line) => line.replace(/^.{30} \w+: /, ''))];
    }
  }
}

test('lines can be followed while the action runs, and the end says that the record is there', async () => {
  await platform.api.putAction(
    'talker',
    `async function main({ lines, pauseMs }) {
      for (let line = 0; line < lines; line++) {
        console.log('line', line);
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
      return {};
    }`,
  );
  const activationId = await platform.api.submit('talker', { lines: 6, pauseMs: 300 });
  const startMs = Date.now();
  const live: string[] = [];
  const last: string[] = [];
  for await (const [event, texts] of followed(activationId)) {
    last.push(event);
    live.push(...texts);
    if (texts.includes('line 0')) expect(Date.now() - startMs).toBeLessThan(1500);
    if (event === 'end') break;
  }
  const wanted = Array.from({ length: 6 }, (_, line) => `line ${line}`);
  expect([live, last.at(-1)]).toEqual([wanted, 'end']);
  expect(last.filter((event) => event === 'lines').length).toBeGreaterThan(2);
  expect(logTexts(await platform.api.record(activationId))).toEqual(wanted);
  // An activation that has ended gives all of its lines.
  const again: string[] = [];
  for await (const [, texts] of followed(activationId)) again.push(...texts);
  expect(again).toEqual(wanted);
});

test('long logs can be followed in full, and those of a blocking call are there when it returns', async () => {
  await platform.api.putAction(
    'shouter',
    "function main() { for (let at = 0; at < 20000; at++) console.log('x'.repeat(100), at); return {}; }",
  );
  const { record } = await platform.api.run('shouter');
  let lines = 0;
  for await (const [, texts] of followed(record.activationId)) lines += texts.length;
  expect([record.logs.length, lines]).toEqual([20_000, 20_000]);
  for (let at = 0; at < 10; at++) {
    const { activationId } = await platform.api.invoke('talker', { lines: 1, pauseMs: 0 });
    const { status, body } = await platform.api.request<{ logs: string[] }>(
      'GET',
      `_/activations/${activationId}/logs`,
    );
    expect([status, body.logs.length]).toEqual([200, 1]);
  }
});
