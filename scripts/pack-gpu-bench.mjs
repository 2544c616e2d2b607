// node scripts/pack-gpu-bench.mjs OUT.tgz [--without-node] [--as-built]
// Packs the benchmark of a GPU for a machine that has neither this repository nor Node's packages: unpacked there,
// ./run-gpu-bench measures and writes its results into ./results. The Node that runs this is packed, too.
import './node-version.cjs';
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { ensureBuilt } from './build.mjs';
import { root } from './fresh.mjs';

const tarTimeoutMs = 300_000;
const packages = ['common', 'gpu', 'invoker', 'bench'];
const natives = ['gpu-bench', 'nvml.node', 'tokens.node', 'tokens', 'cudasim'];

const [out, ...flags] = process.argv.slice(2);
if (out === undefined || flags.some((flag) => !['--without-node', '--as-built'].includes(flag))) {
  console.error('Usage: node scripts/pack-gpu-bench.mjs OUT.tgz [--without-node] [--as-built]');
  process.exit(2);
}

function commit() {
  try {
    const options = { cwd: root, encoding: 'utf8', timeout: 10_000 };
    const changes = execFileSync('git', ['status', '--porcelain', '--untracked-files=no'], options).trim();
    return execFileSync('git', ['rev-parse', 'HEAD'], options).trim() + (changes === '' ? '' : '-dirty');
  } catch (error) {
    console.error(`The commit is not known: ${error.message}`);
    return 'unknown';
  }
}

const isWanted = (path) => !/\.(d\.ts|map|tsbuildinfo|test\.js)$/.test(path) && basename(path) !== 'objects';
const copy = (from, to) => cpSync(from, to, { recursive: true, filter: isWanted });

function stage(folder) {
  for (const name of packages) {
    copy(join(root, name, 'dist'), join(folder, name, 'dist'));
    copy(join(root, name, 'package.json'), join(folder, name, 'package.json'));
    symlinkSync(join('..', '..', name), join(folder, 'node_modules', '@gpuwhisk', name));
  }
  copy(join(root, 'bench', 'gpu'), join(folder, 'bench', 'gpu'));
  for (const name of natives) {
    const path = join(root, 'native', 'build', name);
    if (!existsSync(path)) throw new Error(`native/build/${name} was not built: a C and a C++ compiler are needed.`);
    copy(path, join(folder, 'native', 'build', name));
  }
  if (!flags.includes('--without-node')) copy(process.execPath, join(folder, 'bin', 'node'));
  const script = `#!/bin/sh
# ./run-gpu-bench [--simulated] [--parts A,B] [--seconds N] [--samples N] [--seed N] [--out FOLDER]
here=$(cd "$(dirname "$0")" && pwd) || exit 1
node="$here/bin/node"
[ -x "$node" ] || node=node
BENCH_COMMIT=${commit()} exec "$node" "$here/bench/dist/gpu/main.js" --out "$here/results" "$@"
`;
  writeFileSync(join(folder, 'run-gpu-bench'), script);
  chmodSync(join(folder, 'run-gpu-bench'), 0o755);
}

if (!flags.includes('--as-built')) await ensureBuilt();
const scratch = mkdtempSync(join(tmpdir(), 'gpuwhisk-pack-'));
try {
  const folder = join(scratch, 'gpu-bench');
  mkdirSync(join(folder, 'node_modules', '@gpuwhisk'), { recursive: true });
  stage(folder);
  execFileSync('tar', ['-czf', resolve(out), '-C', scratch, 'gpu-bench'], { timeout: tarTimeoutMs });
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
