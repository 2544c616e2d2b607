import { execFile, spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const startTimeoutMs = 60_000;
const stopTimeoutMs = 30_000;
const callTimeoutMs = 120_000;

/** Whether an engine can be started here: npm run test:all installs it. */
export const hasDocker =
  process.getuid?.() === 0 &&
  ['dockerd', 'docker'].every((name) => spawnSync('sh', ['-c', `command -v ${name}`]).status === 0);

/** A Docker engine that the test has started. */
export interface DockerEngine {
  socketPath: string;
  /** The engine's only network in which the host has an address. */
  network: string;
  /** The engine's folder, which is removed with it. */
  folder: string;
  /** Runs the docker command; resolves with its output. Rejects if it fails. */
  docker(args: readonly string[], env?: NodeJS.ProcessEnv): Promise<string>;
  /** The engine's process, which tests stop and continue. */
  process: ChildProcess;
  stop(): Promise<void>;
}

/** Starts an engine with its own state, socket and network. The host's firewall does not change. */
export async function startDocker(): Promise<DockerEngine> {
  const folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-docker-'));
  const inside = (name: string): string => join(folder, name);
  const socketPath = inside('socket');
  // The host's own configuration must not apply.
  writeFileSync(inside('engine.json'), '{}');
  const log = openSync(inside('log'), 'w');
  const child = spawn(
    'dockerd',
    [
      ...['--data-root', inside('data'), '--exec-root', inside('exec'), '--pidfile', inside('pid')],
      ...['--host', `unix://${socketPath}`, '--bridge', 'none', '--iptables=false', '--ip-masq=false'],
      ...['--config-file', inside('engine.json')],
    ],
    { stdio: ['ignore', log, log] },
  );
  closeSync(log);
  const exited = once(child, 'exit');
  const docker: DockerEngine['docker'] = async (args, env = {}) => {
    const environment = { ...process.env, DOCKER_HOST: `unix://${socketPath}`, ...env };
    const options = { timeout: callTimeoutMs, maxBuffer: 16 * 1024 * 1024, env: environment };
    return (await promisify(execFile)('docker', args, options)).stdout;
  };
  const network = 'gpuwhisk';
  const stop = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) {
      const ids = (await docker(['ps', '-aq'])).split('\n').filter((id) => id !== '');
      if (ids.length > 0) await docker(['rm', '-f', ...ids]);
      // The bridges of networks would outlive the engine.
      await docker(['network', 'prune', '-f']);
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs);
      await exited;
      clearTimeout(timer);
    }
    // The last folder exists once a container had the host's network.
    const mounts = [inside('data'), inside('exec'), inside('exec/netns/default')];
    for (const mount of mounts) spawnSync('umount', ['-l', mount], { stdio: 'ignore' });
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
  };
  const deadline = performance.now() + startTimeoutMs;
  for (;;) {
    try {
      await docker(['network', 'create', network]);
      return { socketPath, network, folder, docker, process: child, stop };
    } catch (error) {
      if (child.exitCode === null && performance.now() < deadline) {
        await new Promise((done) => setTimeout(done, 100));
        continue;
      }
      child.kill('SIGKILL');
      const said = readFileSync(inside('log'), 'utf8').slice(-2000);
      rmSync(folder, { recursive: true, force: true });
      throw new Error(`No Docker engine could be started: ${String(error)}\n${said}`, { cause: error });
    }
  }
}
