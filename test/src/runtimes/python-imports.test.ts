// Reports of the modules that a Python action imports from shared folders while its code is loaded.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from '@jest/globals';
import { findPython } from '@gpuwhisk/invoker/runtimes/find-toolchains';
import type { RuntimeLaunch } from '@gpuwhisk/invoker/containers/runtime-launch';
import { hasPythonPairs, pythonLaunch, pythonPairLaunch } from '@gpuwhisk/invoker/runtimes/python-runtime';
import { zipOf } from './python-cases.js';
import { RuntimeProcess } from './runtime-harness.js';

const runtimesDir = fileURLToPath(new URL('../../../runtimes', import.meta.url));
const dataDir = mkdtempSync(join(tmpdir(), 'gpuwhisk-imports-'));
const shared = join(dataDir, 'shared');
const python = await findPython(join(dataDir, 'python.json'));
afterAll(() => rmSync(dataDir, { recursive: true, force: true }));

const slow = 'import time\ntime.sleep(0.01)\n';
const modules = {
  slow_one: slow,
  slow_two: slow,
  outer: `import slow_one\n${slow}`,
  prints: `${slow}print("loaded", end="")\n`,
  breaks: `${slow}import no_such_module\n`,
  wants_helper: `${slow}import helper\n`,
  asks_platform: `${slow}import os\nname = os.environ.get("__OW_X", "none")\n`,
  asks_for_all: `${slow}import os\nnames = sorted(os.environ)\n`,
  asks_for_others: `${slow}import os\nhome = os.environ.get("HOME"), os.environ.get("X", 1)\n`,
};

mkdirSync(shared);
for (const [name, source] of Object.entries(modules)) writeFileSync(join(shared, `${name}.py`), source);

function launchOf(isPair: boolean): RuntimeLaunch {
  if (python === undefined) throw new Error('there is no Python');
  const make = isPair ? pythonPairLaunch : pythonLaunch;
  const launch = make(runtimesDir, dataDir, { ...python, packageFolders: [...python.packageFolders, shared] });
  return isPair ? { ...launch, env: { ...launch.env, GPUWHISK_SCRATCH: '/dev/shm' } } : launch;
}

const main = 'def main(args):\n  return args\n';

interface Case {
  name: string;
  code: string | Record<string, string>;
  env?: Record<string, string>;
  reported: string[];
  /** Whether a pair does not outlive the action. */
  endsPair?: boolean;
}

const cases: Case[] = [
  { name: 'imports of the action itself', code: 'import outer, slow_two\n', reported: ['outer', 'slow_two'] },
  { name: 'an import after the action printed', code: 'print("x")\nimport slow_one\n', reported: ['slow_one'] },
  { name: 'variables of the platform', code: 'import slow_one\n', env: { __OW_X: '1' }, reported: ['slow_one'] },
  {
    name: 'no module that asks for variables of the platform',
    code: 'import asks_platform, asks_for_all, asks_for_others\nassert asks_platform.name == "1"\nassert "__OW_X" in asks_for_all.names\n',
    env: { __OW_X: '1' },
    reported: ['asks_for_others'],
  },
  {
    name: 'none of them where there are no such variables',
    code: 'import asks_platform, slow_one\nassert asks_platform.name == "none"\n',
    reported: ['slow_one'],
  },
  { name: 'an init parameter', code: 'import slow_one\n', env: { X: '1' }, reported: [] },
  { name: 'environment', code: 'import os\nos.environ["X"] = "1"\nimport slow_one\n', reported: [] },
  { name: 'sys.path', code: 'import sys\nsys.path.append("/x")\nimport slow_one\n', reported: [] },
  { name: 'meta_path', code: 'import sys\nsys.meta_path.reverse()\nimport slow_one\n', reported: [] },
  { name: 'the working folder', code: 'import os\nos.chdir("/")\nimport slow_one\n', reported: [], endsPair: true },
  { name: 'warnings', code: 'import warnings\nwarnings.simplefilter("error")\nimport slow_one\n', reported: [] },
  {
    name: 'the locale',
    code: 'import locale\nlocale.setlocale(locale.LC_NUMERIC, "C.UTF-8")\nimport slow_one\n',
    reported: [],
  },
  { name: 'a module that prints', code: 'import prints, slow_one\n', reported: ['slow_one'] },
  {
    name: 'a module that fails half-way',
    code: 'try:\n  import breaks\nexcept ImportError:\n  import slow_two\n',
    reported: ['slow_two'],
  },
  {
    name: "an archive's own module",
    code: { 'slow_one.py': slow, main: 'import slow_one, slow_two\n' },
    reported: ['slow_two'],
  },
  {
    name: "a shared module that imports an archive's own",
    code: { 'helper.py': '', main: 'import wants_helper\n' },
    reported: [],
  },
  {
    name: "an import of an archive's own module",
    code: { 'helper.py': 'import slow_one\n', main: 'import helper\n' },
    reported: ['slow_one'],
  },
];

describe.each([
  ['the runtime', false, python !== undefined],
  ['a pair', true, python !== undefined && hasPythonPairs()],
])('%s reports', (_, isPair, isHere) => {
  let started: RuntimeProcess | undefined;
  afterAll(() => started?.close());

  /** A process without an action: a pair serves one after the other. */
  async function ready(): Promise<RuntimeProcess> {
    if (isPair && started !== undefined) return started;
    await started?.close();
    return (started = new RuntimeProcess(launchOf(isPair)));
  }

  async function load({ code, env = {}, endsPair = false }: Omit<Case, 'name' | 'reported'>) {
    const runtime = await ready();
    const { main: source, ...files } = typeof code === 'string' ? { main: code } : code;
    const binary = typeof code !== 'string';
    const whole = `${source}${main}`;
    const given = binary ? zipOf({ ...files, '__main__.py': whole }) : whole;
    const { body, isError } = await runtime.init({ code: given, binary, env });
    expect(isError).toBe(false);
    expect((await runtime.run({ a: 1 }, { deadline: String(Date.now() + 20_000) })).body).toEqual({ a: 1 });
    if (isPair) expect((await runtime.unload()).isError).toBe(endsPair);
    if (endsPair) {
      await runtime.close();
      started = undefined;
    }
    return { imports: [], ...(body as { imports?: [string, number][] }) };
  }

  (isHere ? test : test.skip).each(cases)('$name', async ({ reported, ...given }) => {
    const { imports } = await load(given);
    // The action may import others of the interpreter's library.
    const slowOnes = imports.filter(([name]) => name in modules);
    expect(slowOnes.map(([name]) => name)).toEqual(reported);
    for (const [, us] of slowOnes) expect(us).toBeGreaterThan(9000);
  });

  (isHere ? test : test.skip)('nothing in the traceback of an import that fails', async () => {
    const runtime = await ready();
    const before = runtime.stderr.length;
    expect((await runtime.init({ code: `import breaks\n${main}` })).isError).toBe(true);
    const printed = runtime.stderr.slice(before);
    expect(printed).toContain("No module named 'no_such_module'");
    expect(printed).not.toMatch(/gpuwhisk_imports|importlib/);
  });
});
