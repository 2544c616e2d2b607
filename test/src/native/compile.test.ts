// native/compile.mjs: what is compiled again, and what a damaged or unfinished build leads to.
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const compile = pathToFileURL(join(root, 'native', 'compile.mjs')).href;
const hasCompiler = spawnSync('cc', ['--version']).status === 0;
const withCompiler = hasCompiler ? test : test.skip;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-compile-'));
  mkdirSync(join(folder, 'source'));
  source('answer.h', 'int answer(void);\n');
  source('answer.c', '#include "answer.h"\nint answer(void) { return 42; }\n');
  source('main.c', '#include "answer.h"\nint main(void) { return answer(); }\n');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const source = (name: string, text: string): void => writeFileSync(join(folder, 'source', name), text);
const program = (): string => join(folder, 'out', 'program');

/** A compiler that notes what it is called for, before it does `work`. */
function compiler(work = 'exec cc "$@"'): string {
  const path = join(folder, 'compiler');
  const note = 'case " $* " in " --version ") ;; *" -c "*) echo compile;; *) echo link;; esac >> "${0%/*}/calls"';
  writeFileSync(path, `#!/bin/sh\n${note}\n${work}\n`, { mode: 0o755 });
  return path;
}

/** Builds in a process of its own, as each command does; gives its calls of the compiler, and what it printed. */
function build(work?: string): { calls: string[]; printed: string } {
  const cc = compiler(work);
  rmSync(join(folder, 'calls'), { force: true });
  const at = (name: string): string => join(folder, 'source', name);
  const part = {
    target: program(),
    sources: [at('answer.c'), at('main.c')],
    headers: [at('answer.h')],
    flags: ['-O1'],
    compilers: { c: cc },
  };
  const code = `
    const { build } = await import(${JSON.stringify(compile)});
    await build(${JSON.stringify(part)}).catch((error) => console.log(error.name + ': ' + error.message));`;
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
    encoding: 'utf8',
    timeout: 60_000,
    env: { ...process.env, NODE_OPTIONS: '' },
  });
  const calls = existsSync(join(folder, 'calls')) ? readFileSync(join(folder, 'calls'), 'utf8').split('\n') : [];
  return { calls: calls.filter((call) => call !== '').sort(), printed: stdout };
}

const result = (): number | null => spawnSync(program()).status;
const objects = (): string[] => {
  const kept = join(folder, 'out', 'objects', 'source');
  return readdirSync(kept).map((name) => join(kept, name));
};
const partials = (): string[] => readdirSync(join(folder, 'out', 'objects', 'partial'));

withCompiler('compiles what changed, by content and not by date', () => {
  expect(build()).toEqual({ calls: ['compile', 'compile', 'link'], printed: '' });
  expect(result()).toBe(42);
  for (const name of readdirSync(join(folder, 'source'))) utimesSync(join(folder, 'source', name), 4e9, 4e9);
  expect(build().calls).toEqual([]);
  source('answer.c', 'int answer(void) { return 7; }\n');
  expect(build().calls).toEqual(['compile', 'link']);
  expect(result()).toBe(7);
  source('answer.h', 'int answer(void); /* all include it */\n');
  expect(build().calls).toEqual(['compile', 'compile', 'link']);
});

withCompiler('takes an earlier object when its source is as it was', () => {
  build();
  source('answer.c', 'int answer(void) { return 7; }\n');
  build();
  source('answer.c', '#include "answer.h"\nint answer(void) { return 42; }\n');
  expect(build().calls).toEqual(['link']);
  expect(result()).toBe(42);
});

withCompiler('makes a program again that was cut off', () => {
  build();
  truncateSync(program(), 100);
  expect(build()).toEqual({ calls: ['link'], printed: '' });
  expect(result()).toBe(42);
});

withCompiler('compiles again what a half-written object was made from', () => {
  build();
  for (const object of objects()) truncateSync(object, 100);
  rmSync(program());
  expect(build()).toEqual({ calls: ['compile', 'compile', 'link', 'link'], printed: '' });
  expect(result()).toBe(42);
});

withCompiler('an object without content counts as missing', () => {
  build();
  for (const object of objects()) truncateSync(object, 0);
  rmSync(program());
  expect(build()).toEqual({ calls: ['compile', 'compile', 'link'], printed: '' });
});

withCompiler.each([
  ['a full disk', 'fatal error: error writing to /tmp/x.s: No space left on device'],
  ['an old compiler', "error: unrecognized command line option '-std=gnu11'"],
])('%s is one line, and leaves neither a program nor half a file', (_, said) => {
  const { printed } = build(
    `case "$*" in --version) exec cc --version;; *) echo half > "$(printf '%s\\n' "$@" | tail -1)"; echo "cc: ${said}" >&2; exit 1;; esac`,
  );
  expect(printed).toMatch(/^CompileError: \S+compiler could not build (answer|main)\.c: cc: .*\n$/);
  expect(printed).toContain(said);
  expect(existsSync(program())).toBe(false);
  expect(partials()).toEqual([]);
  expect(build()).toMatchObject({ printed: '' });
  expect(result()).toBe(42);
});

withCompiler('an error in a source is told with its place, and the program stays as it was', () => {
  build();
  source('answer.c', 'int answer(void) { return forty_two; }\n');
  expect(build().printed).toMatch(/could not build answer\.c: .*answer\.c:1:\d+: error: .*forty_two/);
  expect(result()).toBe(42);
});
