import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Logger } from '@gpuwhisk/common/logging';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { builtPath } from '../../host/native-programs.js';

/** The stand-in's folder: its daemon and the libraries that take the driver's place. */
export const standInFolder = builtPath('cudasim');

/** Whether the stand-in was built. */
export const hasStandIn = (): boolean => existsSync(join(standInFolder, 'daemon'));

/** Simulated devices are not available; `message` is the reason in one line. */
export class StandInError extends Error {
  override name = 'StandInError';
}

const readyWithinMs = 10_000;
const endWithinMs = 3000;
const restartAfterMs = 200;
/** Restarts of the daemon within ten minutes, at most. */
const maxRestarts = 5;
const restartsWithinMs = 600_000;
/** A Unix socket's path must fit in the kernel's field of 108 bytes. */
const maxSocketPath = 100;

/** Settings and callbacks of a stand-in. */
export interface StandInOptions {
  /** Models and numbers of devices, such as `a100-40x2,h100`. */
  gpus: string;
  /** Folder for the daemon's socket only. */
  folder: string;
  clock: Clock;
  logger: Logger;
  /** Called after a restart of the daemon, which leaves no processes on its devices. */
  restarted(): void;
}

/** A running daemon of simulated GPUs, which ends with this process. */
export interface StandIn {
  /** The daemon's socket, which the libraries find by GPUWHISK_SIM_SOCKET. */
  readonly socket: string;
  readonly pid: number | undefined;
  close(): Promise<void>;
}

/** Starts the daemon of simulated GPUs, and restarts it if it ends. Rejects with StandInError. */
export async function startStandIn(options: StandInOptions): Promise<StandIn> {
  if (!hasStandIn())
    throw new StandInError('There are no simulated GPUs: they were not built, for lack of a C++ compiler.');
  const socket = await socketIn(options.folder);
  const daemon = new Daemon({ ...options, socket });
  await daemon.start();
  return daemon;
}

class Daemon implements StandIn {
  readonly socket: string;
  private child: ChildProcess | undefined;
  private restarts: number[] = [];
  private closed = false;

  constructor(private readonly options: StandInOptions & { socket: string }) {
    this.socket = options.socket;
  }

  get pid(): number | undefined {
    return this.child?.pid;
  }

  start(): Promise<void> {
    const { gpus, socket } = this.options;
    // The daemon ends with its standard input, so that it never outlives this process.
    const child = spawn(join(standInFolder, 'daemon'), ['--socket', socket, '--gpus', gpus], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: {},
    });
    this.child = child;
    let printed = '';
    return new Promise((resolve, reject) => {
      const fail = (why: string): void => {
        timer.cancel();
        child.kill('SIGKILL');
        reject(new StandInError(`The simulated GPUs did not start: ${why}`));
      };
      const timer = this.options.clock.setTimer(readyWithinMs, () => fail(`not within ${readyWithinMs} ms.`));
      child.stdin?.on('error', () => undefined); // The `exit` event reports the daemon's end.
      child.stderr?.setEncoding('utf8').on('data', (text: string) => (printed = (printed + text).slice(-2000)));
      child.stdout?.once('data', () => {
        timer.cancel();
        child.removeAllListeners('exit');
        child.on('exit', (code, signal) => this.ended(`${signal ?? code}${printed && `: ${printed.trim()}`}`));
        resolve();
      });
      child.on('error', (error) => fail(error.message));
      child.on('exit', (code) => fail(printed.trim() || `it ended with ${code}.`));
    });
  }

  async close(): Promise<void> {
    this.closed = true;
    const { child } = this;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    const timer = this.options.clock.setTimer(endWithinMs, () => child.kill('SIGKILL'));
    await exited;
    timer.cancel();
  }

  private ended(how: string): void {
    if (this.closed) return;
    const { clock, logger } = this.options;
    this.restarts = this.restarts.filter((at) => clock.now() - at < restartsWithinMs);
    if (this.restarts.length >= maxRestarts) {
      logger.error({ how }, 'the simulated GPUs ended too often and are not started again');
      return;
    }
    this.restarts.push(clock.now());
    logger.error({ how }, 'the simulated GPUs ended; they are started again');
    void sleep(clock, restartAfterMs)
      .then(async () => {
        if (this.closed) return;
        await this.start();
        this.options.restarted();
      })
      .catch((error: unknown) => this.ended(String(error)));
  }
}

async function socketIn(folder: string): Promise<string> {
  const wanted = join(folder, 'gpus.sock');
  const hash = createHash('sha256').update(folder).digest('hex').slice(0, 12);
  const fits = Buffer.byteLength(wanted) <= maxSocketPath;
  const socket = fits ? wanted : join(tmpdir(), `gpuwhisk-${hash}`, 'gpus.sock');
  await mkdir(join(socket, '..'), { recursive: true, mode: 0o711 });
  return socket;
}
