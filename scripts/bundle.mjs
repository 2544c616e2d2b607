// Bundles programs into one file each: Node.js takes a second to load its hundreds of modules.
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { build } from 'esbuild';
import { root } from './fresh.mjs';
import programs from './program.cjs';

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

/** Writes the bundles of compiled programs for program.cjs, and removes the compiled code of earlier ones. */
export async function bundlePrograms() {
  rmSync(programs.folder, { recursive: true, force: true });
  mkdirSync(programs.folder, { recursive: true });
  for (const [name, main] of Object.entries(programs.mains)) {
    const file = join(programs.folder, `${name}.cjs`);
    const { outputFiles } = await build({
      entryPoints: [join(root, main)],
      outfile: file,
      bundle: true,
      write: false,
      platform: 'node',
      target: 'node20',
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
    writeFileSync(file, `/*${hash}*/(function (require, module, addressOf, importOf) {\n${text}\n})`);
    // The code begins on the second line.
    writeFileSync(`${file}.map`, map.replace('"mappings": "', '"mappings": ";'));
  }
}
