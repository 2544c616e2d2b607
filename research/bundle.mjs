// Makes one file of the policy module of the baselines: a platform loads modules without imports only.
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const dist = fileURLToPath(new URL('./dist', import.meta.url));

/** Writes research/dist/baselines.mjs from the compiled module. */
export async function bundleBaselines() {
  await build({
    entryPoints: [join(dist, 'baselines', 'module.js')],
    outfile: join(dist, 'baselines.mjs'),
    bundle: true,
    platform: 'node',
    target: 'node22',
    format: 'esm',
    legalComments: 'none',
    logLevel: 'error',
  });
}
