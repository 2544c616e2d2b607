// Go actions on the running platform: compiled in one sandbox, run in another.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { JsonObject } from '@gpuwhisk/common/json';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { createRuntimeCatalog } from '@gpuwhisk/invoker/runtimes/create-runtime-catalog';
import AdmZip from 'adm-zip';
import { annotation, logTexts } from '../support/api-client.js';
import type { ApiActivation } from '../support/api-client.js';
import { isolationLack } from '../support/machine.js';
import { newDataDir, removeDataDir, startPlatform } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';
import { manifestWithStemCells, servedByStemCell } from '../support/stem-cells.js';

const runtimesDir = fileURLToPath(new URL('../../../runtimes', import.meta.url));
const dataDir = newDataDir();
const catalog = await createRuntimeCatalog({ runtimesDir, dataDir, clock: systemClock });
const kind = catalog.manifest.runtimes.go?.[0]?.kind;
const primeMs = 600_000;
const caseMs = 120_000;
const isolated = isolationLack === undefined ? test : test.skip;

let platform: RunningPlatform;

async function outcome(
  code: string | Buffer,
  payload: JsonObject = {},
  main?: string,
): Promise<{ status: number; record: ApiActivation }> {
  await platform.api.putAction('gopher', code, { kind: 'go:default', ...(main === undefined ? {} : { main }) });
  return platform.api.run('gopher', payload);
}

/** Each file in `builds` begins with the program's. */
const sha256Bytes = 32;
const programs = (): string[] => readdirSync(join(dataDir, 'builds')).filter((name) => !name.startsWith('.'));

const map = 'map[string]interface{}';
const notBuilt = 'The action failed to generate or locate a binary. See logs for details.';

function zip(files: Record<string, string | Buffer>): Buffer {
  const archive = new AdmZip();
  for (const [name, content] of Object.entries(files)) archive.addFile(name, Buffer.from(content));
  return archive.toBuffer();
}

interface Case {
  name: string;
  code: string | Buffer;
  main?: string;
  payload?: JsonObject;
  result?: unknown;
  error?: string;
  logs?: RegExp;
}

const cases: Case[] = [
  {
    name: "OpenWhisk's signature",
    code: `package main
import "log"
func Main(obj ${map}) ${map} {
  log.Printf("name=%s", obj["name"])
  return ${map}{"message": "Hello, " + obj["name"].(string) + "!"}
}`,
    payload: { name: 'Ada ü' },
    result: { message: 'Hello, Ada ü!' },
    logs: /name=Ada ü$/,
  },
  {
    name: 'typed values, and another name of main',
    code: `package main
type In struct { N int \`json:"n"\` }
type Out struct { Twice int \`json:"twice"\` }
func DoubleIt(in In) Out { return Out{in.N * 2} }`,
    main: 'doubleIt',
    payload: { n: 21 },
    result: { twice: 42 },
  },
  {
    name: "a name as OpenWhisk's build writes it",
    code: `package main\nfunc Helloworld(in ${map}) ${map} { return in }`,
    main: 'helloWorld',
    payload: { a: 1 },
    result: { a: 1 },
  },
  {
    name: 'a zip with packages of its own',
    code: zip({
      'go.mod': 'module example.com/action\n\ngo 1.18\n',
      'main.go': `package main\nimport "example.com/action/greet"\nfunc Main(in ${map}) ${map} { return ${map}{"g": greet.Say(in["name"].(string))} }`,
      'greet/greet.go': 'package greet\nfunc Say(name string) string { return "Hi " + name }',
    }),
    payload: { name: 'Bob' },
    result: { g: 'Hi Bob' },
  },
  {
    name: 'a zip with a folder src',
    code: zip({ 'src/hello.go': `package main\nfunc Main(in ${map}) ${map} { return in }` }),
    payload: { a: 1 },
    result: { a: 1 },
  },
  {
    name: 'an action loop of its own',
    code: `package main
import ("bufio"; "fmt"; "os")
func main() {
  out := os.NewFile(3, "out")
  in := bufio.NewScanner(os.Stdin)
  fmt.Fprintln(out, "{\\"ok\\":true}")
  for in.Scan() { fmt.Fprintln(out, "{\\"own\\":true}") }
}`,
    result: { own: true },
  },
  {
    name: 'environment',
    code: `package main\nimport "os"\nfunc Main(in ${map}) ${map} { return ${map}{"name": os.Getenv("__OW_ACTION_NAME"), "long": len(os.Getenv("__OW_ACTIVATION_ID"))} }`,
    result: { name: '/guest/gopher', long: 32 },
  },
  {
    name: 'own error',
    code: `package main\nfunc Main(in ${map}) ${map} { return ${map}{"error": "sorry"} }`,
    error: 'sorry',
  },
  { name: 'no Go', code: 'hello', error: notBuilt, logs: /exec__\.go:1:1: expected 'package'/ },
  {
    name: 'a type error',
    code: `package main\nfunc Main(in ${map}) ${map} { return 1 }`,
    error: notBuilt,
    logs: /exec__\.go:2:\d+: cannot use 1/,
  },
  { name: 'no such function', code: 'package main', error: notBuilt, logs: /undefined: Main/ },
  { name: 'a name that is none', code: 'package main', main: 'a;b', error: notBuilt, logs: /'a;b' is no name/ },
  {
    name: 'a function of another shape',
    code: 'package main\nfunc Main() {}',
    error: 'Cannot start action. Check logs for details.',
    logs: /Main is a func\(\), not a function of one argument/,
  },
  {
    name: 'panics',
    code: `package main\nfunc Main(in ${map}) ${map} { panic("no luck") }`,
    error: 'command exited',
    logs: /panic: no luck/,
  },
  {
    name: 'a number as result',
    code: `package main\nfunc Main(in ${map}) int { return 1 }`,
    error: 'The action did not return a dictionary or array.',
  },
  { name: 'a zip without Go', code: zip({ readme: '' }), error: notBuilt, logs: /There are no Go files/ },
];

(kind ? describe : describe.skip)('go', () => {
  beforeAll(async () => {
    await catalog.launch(kind ?? '', []);
    const manifest = manifestWithStemCells(join(dataDir, '..'), ['go']);
    platform = await startPlatform({ dataDir, flags: ['--runtimes', manifest] });
  }, primeMs);
  afterAll(async () => {
    expect(await platform.end('SIGTERM')).toBe(0);
    removeDataDir(dataDir);
  });

  test(
    'a stem cell',
    async () => {
      const code = `package main\nfunc Main(obj ${map}) ${map} { return obj }`;
      const record = await servedByStemCell(platform, kind ?? '', { kind: 'go:default', code }, { name: 'Ada' });
      expect(record.response.result).toEqual({ name: 'Ada' });
    },
    caseMs,
  );

  test.each(cases)(
    '$name',
    async ({ code, main, payload, result, error, logs }) => {
      const { record } = await outcome(code, payload, main);
      const printed = logTexts(record).join('\n');
      if (error === undefined) expect({ result: record.response.result, printed }).toMatchObject({ result });
      else expect(record.response.result.error).toBe(error);
      if (logs) expect(printed).toMatch(logs);
    },
    caseMs,
  );

  test(
    'the same code is built once, and its program may be given instead of it',
    async () => {
      const code = `package main\nfunc Main(in ${map}) ${map} { return ${map}{"once": true} }`;
      const before = programs();
      await outcome(code);
      const kept = programs();
      const [built = ''] = kept.filter((name) => !before.includes(name));
      const program = readFileSync(join(dataDir, 'builds', built)).subarray(sha256Bytes);
      for (const given of [code, program, zip({ exec: program })]) {
        await platform.api.putAction('twin', given, { kind: 'go:default' });
        const { record } = await platform.api.run('twin');
        expect(record.response.result).toEqual({ once: true });
        expect(annotation(record, 'kind')).toBe(kind);
      }
      expect(programs()).toEqual(kept);
    },
    caseMs,
  );

  isolated(
    'a build sees nothing of the host, and fills nothing of it',
    async () => {
      const files = {
        'go.mod': 'module action\n\nreplace secret => /root\n',
        'main.go': `package main\nfunc Main(in ${map}) ${map} { return in }`,
        'leak.s': '#include "/etc/shadow"\n',
      };
      const { record } = await outcome(zip(files));
      expect(record.response.result.error).toBe(notBuilt);
      expect(logTexts(record).join('\n')).not.toMatch(/root:|daemon:/);
    },
    caseMs,
  );
});
