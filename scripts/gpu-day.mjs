// npm run gpu-day -- --pack OUT.tar.xz: packs the GPU kit for a machine that has a GPU, and neither this repository, Node.js
// nor a network. Unpacked there, ./gpu-day/gpu-day runs it.
// npm run gpu-day -- --save FOLDER: keeps the results of a run on a GPU in bench/results.
// npm run gpu-day -- [--simulated] ...: runs the kit from this clone.
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { ensureBuilt } from './build.mjs';
import { root } from './fresh.mjs';

const timeoutMs = 300_000;
const main = 'bench/dist/gpu-day/main.js';
const saver = 'bench/dist/documents/save-gpu-day.js';
/** Parts of a release that a GPU tells nothing about. */
const leftOut = ['build/console', 'docker'];
const isWanted = (path) => !/(\.d\.ts|\.map|\.tsbuildinfo|\.test\.js)$/.test(path);

function run(command, args, options = {}) {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    encoding: 'utf8',
    timeout: timeoutMs,
    ...options,
  });
  if (status !== 0) throw new Error(`${command} ${args[0]} failed: ${stderr || error?.message}`);
  return stdout;
}

function commit() {
  const changes = run('git', ['status', '--porcelain', '--untracked-files=no'], { cwd: root }).trim();
  return run('git', ['rev-parse', 'HEAD'], { cwd: root }).trim() + (changes === '' ? '' : '-dirty');
}

function filesOf(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

/** The program of the archive. It checks that the archive is whole, because a copy may have been cut off. */
function launcher(nodeBytes) {
  return `#!/bin/sh
# ./gpu-day [--simulated] [--stages A,B] [--budget S] [--out FOLDER] [--python PROGRAM] [--seed N]
here=$(cd "$(dirname "$0")" && pwd) || exit 1
found=$(wc -c <"$here/bin/node" 2>/dev/null || echo 0)
if [ "$found" -ne ${nodeBytes} ]; then
  echo "The archive is cut off: bin/node has $found of ${nodeBytes} bytes. Copy and unpack it again." >&2
  exit 1
fi
PATH="$here/bin:$PATH" BENCH_COMMIT=${commit()} exec "$here/bin/node" "$here/start.mjs" "$@"
`;
}

/** Compares the sizes of all files with the archive's list, then starts the kit. */
const starter = `import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

const here = import.meta.dirname;
const sizeOf = (path) => statSync(join(here, path), { throwIfNoEntry: false })?.size ?? 0;
const listed = readFileSync(join(here, 'files.txt'), 'utf8').trim().split('\\n').map((line) => line.split('\\t'));
const cut = listed.find(([size, path]) => sizeOf(path) !== Number(size));
if (cut === undefined) await import('./gpuwhisk/${main}');
else {
  console.error(\`The archive is cut off: \${cut[1]} has \${sizeOf(cut[1])} of \${cut[0]} bytes. Copy and unpack it again.\`);
  process.exitCode = 1;
}
`;

/** Lays out the kit: the release, the kit's own modules in it, and this Node.js without its symbols. */
async function layOut(folder) {
  const { layOutRelease } = await import('./release/layout.mjs');
  mkdirSync(join(folder, 'bin'), { recursive: true });
  const release = join(folder, 'gpuwhisk');
  await layOutRelease(release, { site: false });
  for (const path of leftOut) rmSync(join(release, path), { recursive: true, force: true });
  for (const path of ['bench/dist', 'bench/gpu', 'bench/package.json']) {
    cpSync(join(root, path), join(release, path), { recursive: true, filter: isWanted });
  }
  cpSync(process.execPath, join(folder, 'bin', 'node'));
  const stripped = spawnSync('strip', [join(folder, 'bin', 'node')], { timeout: timeoutMs });
  if (stripped.status !== 0) console.error('Node.js is packed with its symbols: strip is missing.');
  writeFileSync(join(folder, 'start.mjs'), starter);
  writeFileSync(join(folder, 'gpu-day'), launcher(statSync(join(folder, 'bin', 'node')).size));
  chmodSync(join(folder, 'gpu-day'), 0o755);
  const listed = filesOf(folder).map((path) => `${statSync(path).size}\t${relative(folder, path)}`);
  writeFileSync(join(folder, 'files.txt'), `${listed.join('\n')}\n`);
}

const mib = (bytes) => `${(bytes / 2 ** 20).toFixed(1)} MiB`;

async function pack(out) {
  const scratch = mkdtempSync(join(tmpdir(), 'gpuwhisk-pack-'));
  try {
    const folder = join(scratch, 'gpu-day');
    await layOut(folder);
    // The check of a cut-off archive comes first in it.
    const first = ['gpu-day', 'start.mjs', 'files.txt', 'bin', 'gpuwhisk'].map((name) => join('gpu-day', name));
    const unfinished = join(scratch, 'archive');
    run('tar', ['-cJf', unfinished, '-C', scratch, ...first], { env: { XZ_OPT: '-T0 -6', ...process.env } });
    cpSync(unfinished, `${out}.new`);
    renameSync(`${out}.new`, out);
    for (const name of ['bin/node', 'gpuwhisk']) {
      const path = join(folder, name);
      const files = statSync(path).isFile() ? [path] : filesOf(path);
      console.log(`${name}: ${mib(files.reduce((sum, file) => sum + statSync(file).size, 0))}`);
    }
    console.log(`${out}: ${mib(statSync(out).size)}`);
    console.log('There: tar -xJf ARCHIVE, or python3 -m tarfile -e ARCHIVE; then ./gpu-day/gpu-day --out FOLDER');
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

const [flag, out, ...more] = process.argv.slice(2);
if (flag === '--pack') {
  if (out === undefined || more.length > 0) {
    console.error('Usage: npm run gpu-day -- --pack OUT.tar.xz');
    process.exit(2);
  }
  await ensureBuilt();
  await pack(resolve(out));
} else {
  await ensureBuilt();
  const args = flag === '--save' ? [join(root, saver), out ?? ''] : [join(root, main), ...process.argv.slice(2)];
  process.exitCode = spawnSync(process.execPath, args, { stdio: 'inherit' }).status ?? 1;
}
