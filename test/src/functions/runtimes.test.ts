// Runtimes other than Node.js and Python on the running platform, in real sandboxes.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { JsonObject } from '@gpuwhisk/common/json';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { createRuntimeCatalog } from '@gpuwhisk/invoker/runtimes/create-runtime-catalog';
import AdmZip from 'adm-zip';
import { runWsk } from '../cli/wsk-process.js';
import { compileJar } from '../native/compile-jar.js';
import { annotation, logTexts } from '../support/api-client.js';
import type { ApiActivation } from '../support/api-client.js';
import { networkLack } from '../support/machine.js';
import { newDataDir, removeDataDir, startPlatform } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';
import { manifestWithStemCells, servedByStemCell } from '../support/stem-cells.js';

const runtimesDir = fileURLToPath(new URL('../../../runtimes', import.meta.url));
const dataDir = newDataDir();
const catalog = await createRuntimeCatalog({ runtimesDir, dataDir, clock: systemClock });
const java = catalog.manifest.runtimes.java?.[0]?.kind;
const prepareMs = 180_000;

let platform: RunningPlatform;
beforeAll(async () => {
  const manifest = manifestWithStemCells(join(dataDir, '..'), ['java', 'ruby', 'php']);
  platform = await startPlatform({ dataDir, flags: ['--runtimes', manifest] });
});
afterAll(async () => {
  expect(await platform.end('SIGTERM')).toBe(0);
  removeDataDir(dataDir);
});

async function put(name: string, exec: JsonObject, more: JsonObject = {}): Promise<number> {
  const { status } = await platform.api.request('PUT', `_/actions/${name}?overwrite=true`, { exec, ...more });
  return status;
}

/** Creates an action, runs it, and returns the answer's status and its record. */
async function outcome(exec: JsonObject, payload: JsonObject = {}): Promise<{ status: number; record: ApiActivation }> {
  expect(await put('guest-program', exec)).toBe(200);
  return platform.api.run('guest-program', payload);
}

const image = 'openwhisk/dockerskeleton';
const script = (code: string): JsonObject => ({ kind: 'blackbox', image, code });

describe('executables', () => {
  test('a shell script', async () => {
    const { status, record } = await outcome(script('#!/bin/bash\necho "hi $1"\necho "{\\"got\\": $(cat)}"'), {
      a: 'ü',
    });
    expect({ status, result: record.response.result }).toEqual({ status: 200, result: { got: { a: 'ü' } } });
    expect(logTexts(record)).toEqual(['hi {"a": "\\u00fc"}']);
    expect(annotation(record, 'kind')).toBe('blackbox');
  });

  test('a zip with exec, sent by wsk --native', async () => {
    const archive = new AdmZip();
    archive.addFile('exec', Buffer.from('#!/bin/sh\nexec ./tool "$@"'));
    archive.addFile('tool', Buffer.from('#!/bin/sh\necho "{\\"tool\\": $1}"'), '', 0o755);
    const file = join(dataDir, 'native.zip');
    archive.writeZip(file);
    const flags = ['--apihost', platform.url, '--auth', platform.auth];
    const wsk = (...words: string[]) => runWsk([...flags, ...words], { directory: dataDir });
    expect(await wsk('action', 'create', 'native', file, '--native')).toMatchObject({ code: 0 });
    const invoked = await wsk('action', 'invoke', 'native', '--result', '--param', 'n', '1');
    expect(JSON.parse(invoked.stdout)).toEqual({ tool: { n: 1 } });
  });

  test('a program compiled elsewhere', async () => {
    const program = readFileSync('/bin/echo').toString('base64');
    const { record } = await outcome({ kind: 'blackbox', image, code: program }, { echo: 'me' });
    expect(record.response.result).toEqual({ echo: 'me' });
  });

  test("without code it is OpenWhisk's stub", async () => {
    const { status, record } = await outcome({ kind: 'blackbox', image });
    expect(status).toBe(502);
    expect(record.response).toMatchObject({
      status: 'application error',
      result: { error: 'This is a stub action. Replace it with custom logic.' },
    });
  });

  test('they see their own folder, and nothing of the host', async () => {
    const code = `#!/bin/sh
id -u; ls /; ls "$HOME"; ls /root /home 2>&1; cat /etc/shadow 2>&1
touch /usr/planted /bin/planted 2>&1
[ -e ${dataDir} ] && echo "the data folder"
for file in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $file; echo; done
echo "{}"`;
    const { status, record } = await outcome(script(code));
    expect(status).toBe(200);
    const printed = logTexts(record).join('\n');
    expect(printed).toMatch(/^1000\n/);
    expect(printed).not.toMatch(/the data folder|standalone\/dist|root:[^x]/);
    expect(printed).not.toMatch(/^(?!.*(cannot|No such|denied)).*planted/m);
  });

  test('one that ignores its end is ended by the time limit, with its children', async () => {
    await put('stubborn', script('#!/bin/sh\ntrap "" TERM INT\nsleep 4242 &\nwhile :; do sleep 1; done'), {
      limits: { timeout: 500 },
    });
    const { record } = await platform.api.run('stubborn');
    expect(record.response.result.error).toBe('The action exceeded its time limits of 500 milliseconds.');
    expect(execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' })).not.toContain('sleep 4242');
  });

  test('other images are refused when invoked, with the reason', async () => {
    const { status, record } = await outcome({ kind: 'blackbox', image: 'openwhisk/example:1' });
    expect({ status, response: record.response }).toMatchObject({
      status: 502,
      response: {
        status: 'action developer error',
        result: { error: "Failed to pull container image 'openwhisk/example:1'." },
      },
    });
    expect(logTexts(record).join()).toContain('only openwhisk/dockerskeleton is served without Docker');
  });
});

(java ? describe : describe.skip)('java', () => {
  const source = `import com.google.gson.JsonObject;
public class Hello {
  public static JsonObject main(JsonObject args) throws Exception {
    System.out.println("in Java");
    JsonObject result = new JsonObject();
    result.addProperty("greeting", "Hello, " + args.get("name").getAsString() + "!");
    result.addProperty("heapMiB", Runtime.getRuntime().maxMemory() >> 20);
    return result;
  }
  public static JsonObject fetch(JsonObject args) throws Exception {
    var uri = java.net.URI.create(System.getenv("__OW_API_HOST") + "/ping");
    var client = java.net.http.HttpClient.newHttpClient();
    var body = java.net.http.HttpResponse.BodyHandlers.ofString();
    JsonObject result = new JsonObject();
    result.addProperty("body", client.send(java.net.http.HttpRequest.newBuilder(uri).build(), body).body());
    return result;
  }
}`;
  let jar: string;
  beforeAll(async () => {
    jar = compileJar(await catalog.launch(java ?? '', []), 'Hello', source).toString('base64');
  }, prepareMs);

  test('a JAR', async () => {
    const { status, record } = await outcome({ kind: 'java:default', code: jar, main: 'Hello' }, { name: 'Ada' });
    expect(status).toBe(200);
    expect(record.response.result.greeting).toBe('Hello, Ada!');
    expect(record.response.result.heapMiB).toBeLessThanOrEqual(128);
    expect(logTexts(record)).toEqual(['in Java']);
    expect(annotation(record, 'kind')).toBe(java);
  });

  test(
    'a stem cell',
    async () => {
      const exec = { kind: 'java:default', code: jar, main: 'Hello' };
      const record = await servedByStemCell(platform, java ?? '', exec, { name: 'Ada' });
      expect(record.response.result.greeting).toBe('Hello, Ada!');
    },
    prepareMs,
  );

  test('main must be named', async () => {
    const { status, body } = await platform.api.request('PUT', '_/actions/nameless', {
      exec: { kind: 'java:default', code: jar },
    });
    expect({ status, error: body.error }).toEqual({
      status: 400,
      error: expect.stringContaining("'main' must be a string defined in 'exec' for 'java:default' actions"),
    });
  });

  (networkLack === undefined ? test : test.skip)('reaches the API', async () => {
    const { record } = await outcome({ kind: 'java:default', code: jar, main: 'Hello#fetch' });
    expect(record.response.result).toEqual({ body: 'pong' });
  });

  test('a class that is not there is a developer error', async () => {
    const { status, record } = await outcome({ kind: 'java:default', code: jar, main: 'Missing' });
    expect({ status, status2: record.response.status }).toEqual({ status: 502, status2: 'action developer error' });
    expect(record.response.result.error).toMatch(/ClassNotFoundException: Missing$/);
  });
});

describe.each([
  ['ruby', 'def main(args)\n  puts "in Ruby"\n  { sum: args["a"] + 1 }\nend', 'in Ruby'],
  ['php', '<?php\nfunction main($args) { echo "in PHP"; return ["sum" => $args["a"] + 1]; }', 'in PHP'],
])('%s', (family, code, line) => {
  const kind = catalog.manifest.runtimes[family]?.[0]?.kind;
  (kind === undefined ? test.skip : test)('an action', async () => {
    const { status, record } = await outcome({ kind: `${family}:default`, code }, { a: 41 });
    expect({ status, result: record.response.result }).toEqual({ status: 200, result: { sum: 42 } });
    expect(logTexts(record)).toEqual([line]);
    expect(annotation(record, 'kind')).toBe(kind);
  });

  (kind === undefined ? test.skip : test)(
    'a stem cell',
    async () => {
      const record = await servedByStemCell(platform, kind ?? '', { kind: `${family}:default`, code }, { a: 41 });
      expect(record.response.result).toEqual({ sum: 42 });
    },
    prepareMs,
  );
});
