// Fetches a runtime ahead of its first use: scripts/node scripts/fetch-runtime.mjs nodejs:22 [--data DIR]
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { data: { type: 'string', default: '.gpuwhisk' } },
});
const built = new URL('../invoker/dist/runtimes/create-runtime-catalog.js', import.meta.url);
if (positionals.length === 0 || !existsSync(built)) {
  console.error(
    positionals.length === 0
      ? 'Usage: scripts/node scripts/fetch-runtime.mjs KIND... [--data DIR]'
      : 'The clone is not built yet: run `npm run build` first.',
  );
  process.exit(2);
}
const { createRuntimeCatalog } = await import(built);
const { systemClock } = await import(new URL('../common/dist/system/clock.js', import.meta.url));
const catalog = await createRuntimeCatalog({
  runtimesDir: fileURLToPath(new URL('../runtimes', import.meta.url)),
  dataDir: values.data,
  clock: systemClock,
});
for (const kind of positionals) {
  try {
    const { command } = await catalog.launch(kind, []);
    console.log(`${kind}: ${command[0]}`);
  } catch (error) {
    console.error(`${kind}: ${error.message}`);
    process.exitCode = 1;
  }
}
