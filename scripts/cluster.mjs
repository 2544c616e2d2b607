// npm run cluster: a cluster on this machine, with Kafka, a server of CouchDB's protocol and Redis, until Ctrl-C.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ensureBuilt } from './build.mjs';
import { missingForCluster, startCluster } from './local-cluster.mjs';

const usage = `Usage: npm run cluster -- [flags]

  --controllers N   controllers to start, 1 to 20 (default 2)
  --invokers N      invokers to start, 1 to 20 (default 3)
  --set KEY=VALUE   any setting of all of them by its path, such as --set limits.maxTimeoutMs=600000; may be repeated
  --help            this text
`;

function readFlags() {
  try {
    return parseArgs({
      options: {
        controllers: { type: 'string', default: '2' },
        invokers: { type: 'string', default: '3' },
        set: { type: 'string', multiple: true, default: [] },
        help: { type: 'boolean' },
      },
    }).values;
  } catch (error) {
    console.error(`${error.message}\n\n${usage}`);
    process.exit(1);
  }
}

const values = readFlags();
if (values.help) {
  console.log(usage);
  process.exit(0);
}
const counts = { controllers: Number(values.controllers), invokers: Number(values.invokers) };
if (!Object.values(counts).every((count) => Number.isInteger(count) && count >= 1 && count <= 20)) {
  console.error('--controllers and --invokers take a number from 1 to 20');
  process.exit(1);
}
await ensureBuilt();
const missing = missingForCluster();
if (missing.length > 0) {
  console.error(
    `Missing for a cluster: ${missing.join(', ')}. \`npm run test:all -- guarantees\` brings them on Debian.`,
  );
  process.exit(1);
}

const dir = mkdtempSync(join(tmpdir(), 'gpuwhisk-cluster-'));
const starting = startCluster({
  dir,
  ...counts,
  set: values.set,
  log: (name, text) => process.stderr.write(`${name}: ${text}`),
});
let stopping = false;
const stop = async () => {
  if (stopping) return;
  stopping = true;
  console.log('Stopping.');
  await starting.then((cluster) => cluster.stop()).catch(() => undefined);
  rmSync(dir, { recursive: true, force: true });
  process.exit(0);
};
process.on('SIGINT', () => void stop());
process.on('SIGTERM', () => void stop());
try {
  const { url, auth, controllers } = await starting;
  const wsk = `./bin/wsk --apihost ${url} --auth ${auth}`;
  console.log(`The cluster is ready at ${url}; its controllers at ${controllers.map((each) => each.url).join(', ')}

  ${wsk} action create hello examples/hello/hello.js
  ${wsk} action invoke hello --result --param name you

Ctrl-C stops it and removes its data.`);
} catch (error) {
  console.error(error.message);
  rmSync(dir, { recursive: true, force: true });
  process.exit(1);
}
