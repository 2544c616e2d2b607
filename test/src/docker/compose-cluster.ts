import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { DockerEngine } from './docker-engine.js';
import { engineImages } from './engine-images.js';

const file = fileURLToPath(new URL('../../../docker/compose.yaml', import.meta.url));
const makeSecrets = fileURLToPath(new URL('../../../docker/make-secrets.sh', import.meta.url));
const callTimeoutMs = 120_000;
const works = (command: string, args: readonly string[]): boolean => spawnSync(command, args).status === 0;

/** `docker compose` if it is installed, else docker-compose (1.29 of Debian); undefined if neither is. */
const program = works('docker', ['compose', 'version'])
  ? (['docker', 'compose'] as const)
  : works('docker-compose', ['version'])
    ? (['docker-compose'] as const)
    : undefined;

/** Whether docker/compose.yaml can be started here: npm run test:all installs the required packages. */
export const hasCompose = program !== undefined;

/** The services of docker/compose.yaml on the test's own engine. */
export interface ComposeCluster {
  /** UUID:SECRET of the account that may create others. */
  operator: string;
  /** The first three numbers of the addresses in the engines' network. */
  backend: string;
  /** Runs `docker compose` on the file; resolves with its output. Rejects if it fails. */
  compose(...args: readonly string[]): Promise<string>;
  /** Addresses of nginx, once it is up: of the API and of the console. */
  address(): Promise<string>;
  consoleAddress(): Promise<string>;
  /** The process of a service's container, and how often the service has reported there that it is ready. */
  inspect(service: string): Promise<{ pid: number; starts: number }>;
}

/** The cluster of docker/compose.yaml, not started yet, with local images in place of a registry's. */
export function composeCluster({ docker, socketPath, folder }: DockerEngine): ComposeCluster {
  const secrets = join(folder, 'cluster-secrets');
  mkdirSync(secrets);
  execFileSync(makeSecrets, [secrets]);
  const lines = readFileSync(join(secrets, '.env'), 'utf8').trim().split('\n');
  const made = Object.fromEntries(lines.map((line) => line.split(/=(.*)/, 2) as [string, string]));
  // The address must not belong to another network of this machine.
  const backend = `10.${String(randomInt(20, 200))}.${String(randomInt(1, 250))}`;
  const settings = {
    ...engineImages,
    ...made,
    BACKEND_PREFIX: backend,
    INVOKER0_PORT: '0',
    INVOKER1_PORT: '0',
    DOCKER_SOCKET: socketPath,
    DATA_FOLDER: join(folder, 'cluster'),
    // The system chooses a free port.
    API_PORT: '0',
    CONSOLE_PORT: '0',
  };
  const compose: ComposeCluster['compose'] = async (...args) => {
    const [command, ...words] = program ?? [];
    if (command === undefined) throw new Error('There is no docker compose.');
    const env = { ...process.env, ...settings, DOCKER_HOST: `unix://${socketPath}` };
    const options = { timeout: callTimeoutMs, maxBuffer: 16 * 1024 * 1024, env };
    return (await promisify(execFile)(command, [...words, '-f', file, ...args], options)).stdout;
  };
  const addressOf = async (inside: string): Promise<string> => {
    const [, port] = /:(\d+)\s*$/.exec(await compose('port', 'nginx', inside)) ?? [];
    if (port === undefined) throw new Error('nginx has no port.');
    return `http://127.0.0.1:${port}`;
  };
  return {
    operator: made.OPERATOR_KEY ?? '',
    backend,
    compose,
    address: () => addressOf('3233'),
    consoleAddress: () => addressOf('3235'),
    inspect: async (service) => {
      const id = (await docker(['ps', '-aq', '--filter', `label=com.docker.compose.service=${service}`])).trim();
      const pid = Number(await docker(['inspect', '--format', '{{.State.Pid}}', id]));
      return { pid, starts: (await docker(['logs', id])).split(' is ready at ').length - 1 };
    },
  };
}
