import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { connectApi, guestKey, type Api } from '../api.js';
import type { BenchContext, Measurement } from '../bench.js';
import { repositoryDir } from '../machine.js';
import { startPlatform } from '../servers.js';
import type { PartPlatform } from '../servers.js';

const actions = 5000;
const codeBytes = 10_000;
const fillConnections = 8;
const timeoutMs = 300_000;

/** Copies all actions of a platform into an empty one by `gpuwhisk migrate` over the API, twice. */
export async function measureMigrate(context: BenchContext, { platform, api }: PartPlatform): Promise<Measurement[]> {
  const { cleanup, temporaryDir, say } = context;
  const source = await startPlatform(cleanup, { dataDir: join(temporaryDir, 'migrate-source') });
  await fill(context, source.url);
  const migrate = (): Promise<number> => runMigrate(context, source.url, platform.url);
  const perS = actions / ((await migrate()) / 1000);
  await checkCount(api);
  const againPerS = actions / ((await migrate()) / 1000);
  await source.stop();
  say(`  ${actions} actions of ${codeBytes} bytes: ${perS.toFixed(0)} a second, ${againPerS.toFixed(0)} when equal`);
  return [
    { name: 'migratePerS', value: perS },
    { name: 'migrateAgainPerS', value: againPerS },
  ];
}

/** Creates the actions; each has different code. */
async function fill({ cleanup }: BenchContext, url: string): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    const api = connectApi(url);
    cleanup.add('connection', () => api.close());
    while (next < actions) {
      const number = next++;
      const code = `function main() { return { number: ${number} }; } // `.padEnd(codeBytes, `${number} `);
      await api.putAction(`action${number}`, { code });
    }
    api.close();
  };
  await Promise.all(Array.from({ length: fillConnections }, worker));
}

async function checkCount(api: Api): Promise<void> {
  const { actions: count } = (await api.json('GET', '/api/v1/namespaces/_/actions?count=true')) as { actions: number };
  if (count !== actions) throw new Error(`the target has ${count} actions, not ${actions}`);
}

/** Runs the command as a user would; resolves with its time from start to end, ms. */
async function runMigrate({ cleanup }: BenchContext, from: string, to: string): Promise<number> {
  const program = join(repositoryDir, 'bin', 'gpuwhisk');
  const keys = ['--auth', guestKey, '--to-auth', guestKey];
  const startedMs = performance.now();
  const child = spawn(process.execPath, [program, 'migrate', '--from', from, '--to', to, ...keys], {
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: timeoutMs,
  });
  cleanup.add('migration', () => void child.kill('SIGKILL'));
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  const elapsedMs = performance.now() - startedMs;
  if (code !== 0) throw new Error(`gpuwhisk migrate ended with ${code}: ${output.slice(-2000)}`);
  return elapsedMs;
}
