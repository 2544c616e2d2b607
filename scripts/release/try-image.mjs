// node scripts/release/try-image.mjs IMAGE: imports a release's image (.image.tar.gz), starts it by the compose file beside it, and calls a
// function through the API: after the first start, after a restart, after a crash, and in a new container with the same volume. Prints the
// times, s. Needs Docker, compose, and ports 3233 to 3235; leaves neither image nor volume.
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { run } from './run.mjs';

const serveMs = 60_000;
const answerMs = 30_000;
const namespace = 'http://127.0.0.1:3233/api/v1/namespaces/_';

const [file] = process.argv.slice(2);
const composeFile = join(dirname(file ?? ''), 'compose.single.yaml');
if (file === undefined || !existsSync(file) || !existsSync(composeFile)) {
  console.error('Usage: node scripts/release/try-image.mjs IMAGE, with compose.single.yaml beside it');
  process.exit(2);
}

const name = `gpuwhisk-try-${process.pid}`;
const image = `${name}:latest`;
/** Compose is a plugin of docker's command, or a program of its own. */
const plugin = (() => {
  try {
    run('docker', ['compose', 'version']);
    return ['docker', 'compose'];
  } catch {
    return ['docker-compose'];
  }
})();
const [program, ...words] = [...plugin, '--project-name', name, '--file', composeFile];
const compose = (...args) => run(program, [...words, ...args], { env: { ...process.env, GPUWHISK_IMAGE: image } });
/** The number of the service's container. */
const container = () => compose('ps', '--quiet', 'gpuwhisk').trim();

const times = {};
async function timed(what, work) {
  const beganMs = performance.now();
  const result = await work();
  times[what] = Math.round((performance.now() - beganMs) / 100) / 10;
  return result;
}

/** Resolves with the guest's key once the API answers. Throws an Error with the container's log if it does not in a minute. */
async function serves() {
  const endMs = performance.now() + serveMs;
  while (performance.now() < endMs) {
    try {
      await fetch('http://127.0.0.1:3233/api/v1', { signal: AbortSignal.timeout(answerMs) });
      const [, key] = /--auth (\S+)/.exec(compose('logs', 'gpuwhisk')) ?? [];
      if (key !== undefined) return key;
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
    }
    await sleep(100);
  }
  throw new Error(`The image does not serve:\n${compose('logs', 'gpuwhisk')}`);
}

/** Resolves with the answer's body. Throws an Error if that is not 200. */
async function ask(key, method, path, body) {
  const headers = { authorization: `Basic ${Buffer.from(key).toString('base64')}`, 'content-type': 'application/json' };
  const signal = AbortSignal.timeout(answerMs);
  const answer = await fetch(`${namespace}/${path}`, { method, headers, signal, body: body && JSON.stringify(body) });
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return JSON.parse(text);
}

const hello = 'exports.main = ({ name }) => ({ greeting: `Hello, ${name}!` })';

let calls = 0;
/** Calls the function, and checks that the activations of every earlier call are still there. */
async function call(key) {
  const { greeting } = await ask(key, 'POST', 'actions/hello?blocking=true&result=true', { name: 'you' });
  if (greeting !== 'Hello, you!') throw new Error(`The function answered ${greeting}.`);
  calls += 1;
  // Lists follow the records by a moment.
  const endMs = performance.now() + answerMs;
  for (;;) {
    const records = await ask(key, 'GET', 'activations?name=hello&limit=100');
    if (records.length === calls) return;
    if (performance.now() > endMs) throw new Error(`${calls} calls have left ${records.length} records.`);
    await sleep(100);
  }
}

try {
  await timed('import', () => run('docker', ['import', file, image]));
  await timed('firstFunction', async () => {
    const key = await timed('serves', () => {
      compose('up', '--detach');
      return serves();
    });
    await ask(key, 'PUT', 'actions/hello', { exec: { kind: 'nodejs:default', code: hello } });
    await call(key);
  });
  await timed('afterRestart', async () => {
    compose('restart');
    await call(await serves());
  });
  await timed('afterCrash', async () => {
    run('docker', ['kill', container()]);
    compose('up', '--detach');
    await call(await serves());
  });
  await timed('newContainer', async () => {
    compose('down');
    compose('up', '--detach');
    const key = await serves();
    await call(key);
    const words = ['--apihost', 'http://127.0.0.1:3233', '--auth', key, 'action', 'list'];
    const listed = run('docker', ['exec', container(), 'wsk', ...words]);
    if (!listed.includes('hello')) throw new Error(`wsk in the container lists no function: ${listed}`);
  });
  console.log(JSON.stringify(times));
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  compose('down', '--volumes');
  run('docker', ['image', 'rm', '--force', image]);
}
