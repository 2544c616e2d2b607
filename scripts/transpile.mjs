// Makes JavaScript of every package's TypeScript, file by file, in `dist` of the package. `tsc` only checks types.
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { build, version } from 'esbuild';
import { digestOf, readRecord, root, writeRecord } from './fresh.mjs';

/** Digests of the sources that `dist` was made from, by path: only what changed is made again. */
const digestsFile = join(root, 'build', 'transpiled.json');
const output = /\.(js|js\.map|d\.ts|d\.ts\.map)$/;

const options = {
  bundle: false,
  format: 'esm',
  platform: 'node',
  target: 'es2022',
  charset: 'utf8',
  sourcemap: true,
  sourcesContent: false,
  logLevel: 'silent',
};

/**
 * Brings `dist` of the packages up to date, and removes files there whose source is gone. `changes` is called before the first
 * change with the names of packages that change. Resolves with the digests of their sources, by path. Rejects with esbuild's
 * messages if a source does not parse.
 */
export async function transpile(packages, changes) {
  const before = readRecord(digestsFile);
  const after = {};
  const changed = new Map();
  const gone = [];
  for (const name of packages) {
    const sources = sourcesOf(join(root, name, 'src'));
    const settings = readFileSync(join(root, name, 'tsconfig.json'));
    const stale = sources.filter((source) => {
      const path = relative(root, source);
      after[path] = digestOf(version, JSON.stringify(options), settings, readFileSync(source)).slice(0, 16);
      return before[path] !== after[path] || !existsSync(builtOf(name, source, '.js'));
    });
    const left = withoutSource(name, sources);
    gone.push(...left);
    if (stale.length + left.length > 0) changed.set(name, stale);
  }
  if (changed.size === 0) return after;
  changes([...changed.keys()]);
  const others = Object.entries(before).filter(([path]) => !packages.includes(path.split(sep)[0]));
  const known = { ...Object.fromEntries(others), ...after };
  // Until all is written, changed files have no digest: a build that is stopped does them again.
  const stale = new Set([...changed.values()].flat().map((source) => relative(root, source)));
  writeRecord(digestsFile, Object.fromEntries(Object.entries(known).filter(([path]) => !stale.has(path))));
  for (const path of gone) rmSync(path);
  for (const [name, entryPoints] of changed) {
    const folder = join(root, name);
    await build({ ...options, entryPoints, outbase: join(folder, 'src'), outdir: join(folder, 'dist') });
  }
  writeRecord(digestsFile, known);
  return after;
}

function sourcesOf(folder) {
  return readdirSync(folder, { recursive: true })
    .filter((path) => /\.tsx?$/.test(path) && !path.endsWith('.d.ts'))
    .map((path) => join(folder, path));
}

/** The path in `dist` that a source becomes. */
function builtOf(name, source, ending) {
  const inside = relative(join(root, name, 'src'), source).replace(/\.tsx?$/, ending);
  return join(root, name, 'dist', inside);
}

/** Files in a package's `dist` that no source stands for: a compiled test would still be run. */
function withoutSource(name, sources) {
  const folder = join(root, name, 'dist');
  if (!existsSync(folder)) return [];
  const modules = new Set(sources.map((source) => builtOf(name, source, '')));
  return readdirSync(folder, { recursive: true })
    .filter((path) => output.test(path))
    .map((path) => join(folder, path))
    .filter((path) => !modules.has(path.replace(output, '')));
}
