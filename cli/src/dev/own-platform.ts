import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { WskError } from '../errors.js';

/** A platform for one developer, which is removed with all that it has stored. */
export interface OwnPlatform {
  apiHost: string;
  /** The key of its guest. */
  auth: string;
  /** Resolves when the process has ended, for whatever reason. */
  ended: Promise<void>;
  close(): Promise<void>;
}

const program = fileURLToPath(new URL('../../../scripts/serve.cjs', import.meta.url));
const startMs = 60_000;
const stopMs = 5000;
/** The GPU that is simulated where the machine has none. */
const simulatedGpus = 'sim:a100-40';
/** The end of the output that explains a failed start, characters. */
const explanation = 2000;

/**
 * Starts a platform in a process of its own, with GPUs as `gpus` says: those of the machine or a simulated one by default.
 * Returns undefined if `interrupted` resolves before it has started.
 * @throws WskError with the end of its output if it does not start.
 */
export async function startOwnPlatform(
  interrupted: Promise<void>,
  gpus = existsSync('/dev/nvidiactl') ? 'auto' : simulatedGpus,
): Promise<OwnPlatform | undefined> {
  if (!existsSync(program)) {
    throw new WskError(
      'The programs of the platform are not installed here: name one that runs by --apihost and --auth.',
    );
  }
  const folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-dev-'));
  const settings = ['fetchRuntimes=false', 'prepareRuntimes=false', 'drainMs=100'];
  const args = ['--port', '0', '--gateway-port', 'off', '--data', join(folder, 'data'), '--gpus', gpus];
  // In a session of its own: a Ctrl-C in the terminal reaches this command alone, which ends the platform in good order.
  const child = spawn(process.execPath, [program, ...args, ...settings.flatMap((one) => ['--set', one])], {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()).once('error', () => resolve()));
  const signal = (name: NodeJS.Signals): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, name);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  };
  const remove = (): void => rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  // For an end without close, as after a closed pipe: the platform has a session of its own and would go on.
  const atExit = (): void => {
    signal('SIGKILL');
    remove();
  };
  process.once('exit', atExit);
  const close = async (): Promise<void> => {
    child.kill('SIGTERM');
    const timer = setTimeout(() => signal('SIGKILL'), stopMs);
    await ended;
    clearTimeout(timer);
    process.off('exit', atExit);
    remove();
  };
  let output = '';
  let isInterrupted = false;
  const ready = new Promise<RegExpExecArray | undefined>((resolve) => {
    const take = (text: string): void => {
      output = (output + text).slice(-10 * explanation);
      const found = /wsk --apihost (\S+) --auth (\S+)/.exec(output);
      if (found !== null) resolve(found);
    };
    child.stdout.setEncoding('utf8').on('data', take);
    child.stderr.setEncoding('utf8').on('data', take);
    void ended.then(() => resolve(undefined));
    void interrupted.then(() => {
      isInterrupted = true;
      resolve(undefined);
    });
    setTimeout(() => resolve(undefined), startMs).unref();
  });
  const [, apiHost, auth] = (await ready) ?? [];
  if (apiHost !== undefined && auth !== undefined) return { apiHost, auth, ended, close };
  await close();
  if (isInterrupted) return undefined;
  throw new WskError(`The platform for this command did not start:\n${output.slice(-explanation)}`);
}
