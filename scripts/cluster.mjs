// npm run cluster: a cluster on this machine, with Kafka, a server of CouchDB's protocol and Redis, until Ctrl-C.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { parseArgs } from 'node:util';
import { ensureBuilt } from './build.mjs';
import { missingForCluster, startCluster } from './local-cluster.mjs';
import { installForCluster } from './test-system.mjs';

const usage = `Usage: npm run cluster -- [flags]

  --controllers N   controllers to start, 1 to 20 (default 2)
  --invokers N      invokers to start, 1 to 20 (default 3)
  --gpus SPEC       GPUs of each invoker, such as sim:a100-40x2 for two simulated ones (default none)
  --set KEY=VALUE   any setting of all of them by its path, such as --set limits.maxTimeoutMs=600000; may be repeated
  --install         installs what a cluster needs and this machine lacks: Redis, Java and Maven by apt-get, which takes root,
                    Kafka by Maven, a server of CouchDB's protocol by npm; without it a terminal is asked
  --help            this text
`;

function readFlags() {
  try {
    return parseArgs({
      options: {
        controllers: { type: 'string', default: '2' },
        invokers: { type: 'string', default: '3' },
        gpus: { type: 'string', default: 'none' },
        set: { type: 'string', multiple: true, default: [] },
        install: { type: 'boolean' },
        help: { type: 'boolean' },
      },
    }).values;
  } catch (error) {
    console.error(`${error.message}\n\n${usage}`);
    process.exit(1);
  }
}

/** Installs missing engines if the command line asks for it; ends the process if engines are still missing. */
async function bringEngines() {
  const missing = missingForCluster();
  if (missing.length === 0) return;
  const what = `Missing for a cluster: ${missing.join(', ')}.`;
  if (!values.install && !(process.stdin.isTTY && (await isWanted(`${what} Install? [y/N] `)))) {
    console.error(`${what} \`npm run cluster -- --install\` installs them on Debian.`);
    process.exit(1);
  }
  console.log(`Installing ${missing.join(', ')} (once) ...`);
  await installForCluster();
  const left = missingForCluster();
  if (left.length === 0) return;
  console.error(`Still missing for a cluster: ${left.join(', ')}.`);
  process.exit(1);
}

async function isWanted(question) {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  try {
    return /^y(es)?$/i.test((await terminal.question(question)).trim());
  } finally {
    terminal.close();
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
await ensureBuilt({ site: true });
await bringEngines();

const dir = mkdtempSync(join(tmpdir(), 'gpuwhisk-cluster-'));
const starting = startCluster({
  dir,
  ...counts,
  gpus: values.gpus,
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
  const { url, consoleUrl, auth, operatorAuth, controllers } = await starting;
  const wsk = `./bin/wsk --apihost ${url} --auth ${auth}`;
  console.log(`The cluster is ready at ${url}; its controllers at ${controllers.map((each) => each.url).join(', ')}
Its console is at ${consoleUrl}/console, its documentation at ${consoleUrl}/docs

  ${wsk} action create hello examples/hello/hello.js
  ${wsk} action invoke hello --result --param name you

Its operator, for instance to make users:

  ./bin/wskadmin --apihost ${url} --auth ${operatorAuth} user create alice

Ctrl-C stops it and removes its data.`);
} catch (error) {
  console.error(error.message);
  rmSync(dir, { recursive: true, force: true });
  process.exit(1);
}
