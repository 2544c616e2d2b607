// Machines of an emulated cloud: invokers as processes beside a controller.
import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Logger } from '@gpuwhisk/common/logging';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Machines, WantedMachine } from '@gpuwhisk/controller/gpu/procure/emulated-provider';
import { machineLabel } from '@gpuwhisk/controller/gpu/procure/procurement';
import { removeTree } from '@gpuwhisk/invoker/host/trees';
import { assign } from '../process/settings-flags.js';
import type { ClusterConfig } from './flags.js';

const main = fileURLToPath(new URL('../../../bin/gpuwhisk', import.meta.url));
/** Time beyond the drain after which a process is killed, ms. */
const killAfterMs = 5000;

/** Words before a command that end it with this process, however that ends; none where the system lacks the program. */
function dyingWithParent(): string[] {
  return spawnSync('setpriv', ['--version']).status === 0 ? ['setpriv', '--pdeathsig', 'KILL'] : [];
}

/** Settings that are the controller's own, or secret, and those that rent machines. */
const ownSettings = [
  ...['port', 'gatewayPort', 'gatewayUrl', 'consolePort', 'consoleUrl'],
  ...['operatorKey', 'operators', 'name', 'dataDir'],
];

/**
 * Machines as invoker processes with the engines of this controller's cluster. `config.gpu.procure.emulated.set` has further
 * settings. A process ends with the controller that has started it.
 */
export function localMachines(config: ClusterConfig, clock: Clock, logger: Logger): Machines {
  const folder = join(config.dataDir, 'machines');
  const running = new Map<string, { child: ChildProcess; exited: Promise<void> }>();
  const stop = async (name: string, isCut: boolean): Promise<void> => {
    const one = running.get(name);
    if (one !== undefined) {
      one.child.kill(isCut ? 'SIGKILL' : 'SIGTERM');
      const late = clock.setTimer(config.drainMs + killAfterMs, () => one.child.kill('SIGKILL'));
      await one.exited.finally(() => late.cancel());
    }
    running.delete(name);
    await removeTree(join(folder, name));
  };
  return {
    async start(wanted) {
      const { name } = wanted;
      const own = join(folder, name);
      await mkdir(own, { recursive: true, mode: 0o700 });
      const file = join(own, 'machine.json');
      await writeFile(file, JSON.stringify(settingsOf(config, wanted)), { mode: 0o600 });
      const args = [main, 'invoker', '--name', name, '--config', file, '--data', own, '--port', '0'];
      const [program = '', ...words] = [...dyingWithParent(), process.execPath, ...args];
      const child = spawn(program, words, { stdio: ['ignore', 'ignore', 'pipe'] });
      child.stderr.on('data', (text: Buffer) =>
        logger.warn({ machine: name, text: String(text) }, 'an emulated machine'),
      );
      const exited = new Promise<void>((resolve) => {
        child.once('exit', (code) => {
          logger.info({ machine: name, code }, 'the process of an emulated machine has ended');
          resolve();
        });
        child.once('error', (error) => {
          logger.error({ machine: name, error: String(error) }, 'an emulated machine could not be started');
          resolve();
        });
      });
      running.set(name, { child, exited });
    },
    stop,
    async close() {
      await Promise.all([...running.keys()].map((name) => stop(name, false)));
    },
  };
}

/** The configuration of a machine's invoker. */
function settingsOf(config: ClusterConfig, { name, market, pricePerHour }: WantedMachine): Record<string, unknown> {
  const { gpu, ...settings }: Record<string, unknown> & Pick<ClusterConfig, 'gpu'> = { ...config };
  for (const one of ownSettings) delete settings[one];
  const { node, procure, ...ofGpu } = gpu;
  settings.gpu = {
    ...ofGpu,
    node: { labels: { ...node.labels, [machineLabel]: name }, market, pricePerHour },
  };
  for (const [path, value] of Object.entries(procure.emulated.set)) assignValue(settings, path, value);
  return settings;
}

function assignValue(settings: Record<string, unknown>, path: string, value: unknown): void {
  assign(settings, `${path}=${JSON.stringify(value)}`);
}
