// Bundles programs into one file each: Node.js takes a second to load its hundreds of modules.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { build } from 'esbuild';
import { digestOf, readRecord, root, writeRecord, writeWhole } from './fresh.mjs';
import programs from './program.cjs';

/** What the bundles were made from. */
const keyFile = join(root, 'build', 'bundled.json');

/** Libraries with addons, clients of engines and the tracer, which few processes use; they are loaded from node_modules. */
const external = [
  ...['lmdb', 'msgpackr', 'kafkajs', 'ioredis', 'bull', 'bullmq'],
  // Not `api`, which prom-client loads in every server.
  ...['exporter-trace-otlp-http', 'resources', 'sdk-trace-base'].map((name) => `@opentelemetry/${name}`),
];

/**
 * Gives each module the address that it has outside the bundle, by which it finds files and threads. Imports of addresses that
 * are known at run time only, of policy modules, are done by program.cjs.
 */
const addresses = {
  name: 'addresses',
  setup({ onLoad }) {
    onLoad({ filter: /\.js$/ }, ({ path }) => {
      const source = readFileSync(path, 'utf8');
      const computed = /\bimport\((?=\w)/g;
      if (!source.includes('import.meta.url') && !computed.test(source)) return undefined;
      const address = `addressOf(${JSON.stringify(relative(root, path))})`;
      return { contents: source.replaceAll('import.meta.url', address).replace(computed, 'importOf(') };
    });
  },
};

/** Removes the bundles: their modules are about to change. */
export const removeBundles = () => rmSync(programs.folder, { recursive: true, force: true });

/**
 * Writes the bundles of compiled programs for program.cjs, unless they are made from these modules: `digests` are those of
 * their sources. Removes the compiled code of earlier bundles.
 */
export async function bundlePrograms(digests) {
  const settings = ['package-lock.json', 'scripts/bundle.mjs', 'scripts/program.cjs'];
  const key = digestOf(JSON.stringify(digests), ...settings.map((path) => readFileSync(join(root, path))));
  const fileOf = (name) => join(programs.folder, `${name}.cjs`);
  const names = Object.keys(programs.mains);
  if (readRecord(keyFile).key === key && names.every((name) => existsSync(fileOf(name)))) return;
  removeBundles();
  mkdirSync(programs.folder, { recursive: true });
  await Promise.all(names.map((name) => bundle(join(root, programs.mains[name]), fileOf(name))));
  writeRecord(keyFile, { key });
}

async function bundle(main, file) {
  const { outputFiles } = await build({
    entryPoints: [main],
    outfile: file,
    bundle: true,
    write: false,
    platform: 'node',
    target: 'node22',
    format: 'cjs',
    // A script that vm compiles cannot import; it requires instead, as late.
    supported: { 'dynamic-import': false },
    external,
    plugins: [addresses],
    legalComments: 'none',
    // For profiles.
    sourcemap: 'external',
    sourcesContent: false,
    // Without comments; lines that stack traces can name.
    minifyWhitespace: true,
    lineLimit: 120,
    logLevel: 'error',
  });
  const [{ text: map }, { text }] = outputFiles;
  const hash = createHash('sha256').update(text).digest('hex').slice(0, programs.hashLetters);
  // The code begins on the second line.
  writeWhole(`${file}.map`, map.replace('"mappings": "', '"mappings": ";'));
  writeWhole(file, `/*${hash}*/(function (require, module, addressOf, importOf) {\n${text}\n})`);
}
