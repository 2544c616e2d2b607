// Fuzzes what reads bytes of tenants, with libFuzzer (clang) under AddressSanitizer and UBSan:
//
//   node native/fuzz/fuzz.mjs [--seconds SECONDS] [TARGET]...
//
// Each target runs for 30 s from the seeds of seeds/TARGET; two run at a time. A failure prints the report and the input, in
// hexadecimal, and ends with 1. What was found during longer runs is worth a seed, if it is small.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, sourcesIn } from '../compile.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const native = dirname(here);
const out = join(native, '..', 'build', 'native-fuzz');
const atOnce = 2;
const inputLimitSeconds = 10;
const sanitizers = '-fsanitize=fuzzer,address,undefined';

const inject = (...names) => names.map((name) => join(native, 'inject', `${name}.cpp`));
const folder = (...path) => sourcesIn(join(native, ...path), '.c', '.cpp');
const without = (files, name) => files.filter((file) => basename(file) !== name);

/** Of each target, besides its own file: the sources, and flags for them. */
const targets = {
  elf: { sources: inject('elf_object', 'failure') },
  frames: {
    sources: [join(native, 'channel', 'inbox.c'), join(native, 'proxy', 'frames.cpp')],
    flags: ['-Dread=fuzz_read', '-D_exit=fuzz_exit'],
  },
  requests: {
    sources: [
      ...inject('elf_object', 'failure'),
      ...['batch', 'parts', 'request'].map((name) => join(native, 'proxy', `${name}.cpp`)),
    ],
  },
  wire: { sources: without(folder('cudasim', 'daemon'), 'main.cpp') },
  pages: { sources: without(folder('token-server'), 'addon.cpp') },
};

function headersOf(sources) {
  const folders = new Set([
    ...sources.map(dirname),
    join(native, 'inject'),
    join(native, 'tokens'),
    join(native, 'cudasim'),
  ]);
  return [...folders].flatMap((path) => sourcesIn(path, '.h'));
}

async function buildTarget(name) {
  const { sources, flags = [] } = targets[name];
  const target = join(out, name, name);
  const all = [join(here, `${name}.cpp`), ...sources];
  await build({
    target,
    sources: all,
    headers: headersOf(all),
    flags: ['-g', '-O1', '-Wall', '-Wextra', '-Werror', sanitizers, '-fno-sanitize-recover=all', ...flags],
    linkFlags: [sanitizers, '-pthread'],
    compilers: { c: 'clang', cpp: 'clang++' },
  });
  return target;
}

/** Runs a target from its seeds; returns whether it held, with libFuzzer's last lines. */
async function fuzz(name, seconds) {
  const program = await buildTarget(name);
  const scratch = mkdtempSync(join(tmpdir(), `gpuwhisk-fuzz-${name}-`));
  const corpus = join(scratch, 'corpus');
  mkdirSync(corpus);
  const args = [
    `-max_total_time=${seconds}`,
    `-timeout=${inputLimitSeconds}`,
    '-close_fd_mask=3',
    '-rss_limit_mb=1024',
  ];
  const child = spawn(program, [...args, corpus, join(here, 'seeds', name)], {
    cwd: scratch,
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: (seconds + 60) * 1000,
    env: { ...process.env, UBSAN_OPTIONS: 'print_stacktrace=1' },
  });
  let report = '';
  child.stderr.setEncoding('utf8').on('data', (text) => (report = (report + text).slice(-20_000)));
  const status = await new Promise((resolve, reject) => child.on('error', reject).on('close', resolve));
  const runs = Number(/Done (\d+) runs/.exec(report)?.[1] ?? 0);
  for (const file of readdirSync(scratch).filter((file) => /^(crash|leak|timeout|oom|slow-unit)-/.test(file)))
    report += `${file}: ${readFileSync(join(scratch, file)).toString('hex')}\n`;
  rmSync(scratch, { recursive: true, force: true });
  return { name, held: status === 0 && runs > 0, runs, report };
}

const words = process.argv.slice(2);
const at = words.indexOf('--seconds');
const [, seconds = '30'] = at < 0 ? [] : words.splice(at, 2);
const asked = words.length > 0 ? words : Object.keys(targets);
const unknown = asked.filter((name) => !Object.hasOwn(targets, name));
if (unknown.length > 0 || !(Number(seconds) > 0)) {
  console.error(`usage: node native/fuzz/fuzz.mjs [--seconds SECONDS] [${Object.keys(targets).join(' | ')}]...`);
  process.exit(2);
}
if (spawnSync('clang++', ['--version']).status !== 0) {
  console.error('Fuzzing needs clang and clang++.');
  process.exit(2);
}
const queue = [...asked];
let failed = false;
const work = async () => {
  for (let name = queue.shift(); name !== undefined; name = queue.shift()) {
    const { held, runs, report } = await fuzz(name, Number(seconds));
    console.log(`${name}: ${held ? `${runs} inputs` : 'FAILED'}`);
    if (!held) console.error(report);
    failed ||= !held;
  }
};
await Promise.all(Array.from({ length: atOnce }, work));
process.exitCode = failed ? 1 : 0;
