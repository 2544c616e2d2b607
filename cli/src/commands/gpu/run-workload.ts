// `wsk gpu workload run`.
import { spawn, type ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Client } from '../../client/client.js';
import type { CommandContext } from '../../command.js';
import { argumentError, messageOf, wrapError, WskError } from '../../errors.js';
import { asMap, asText, type JsonMap } from '../../json/json.js';
import { printError } from '../../terminal.js';
import { followLog, ProgressReader, progressSource, type MeasuredRate, type ProgressSource } from './progress.js';

/** Route of the workloads. */
export const workloadsRoute = 'gpu/workloads';

/** The exit code of an answer of 404. */
const notFound = 404 - 256;
/** Lists of paths: settings are put before the caller's value. Other variables replace the caller's value. */
const searchLists = ['LD_LIBRARY_PATH', 'LD_PRELOAD', 'PYTHONPATH'];

/**
 * `wsk gpu workload run -- COMMAND`: registers the command, starts it as an MPS client, reports its progress if that is
 * asked for, and removes the registration when the command has ended. `bodyFor` makes the registration of a name.
 */
export async function runWorkload(
  { args: [, ...command], client, flags, settings }: CommandContext,
  bodyFor: (name: string) => JsonMap,
): Promise<void> {
  const [program] = command;
  if (program === undefined) throw argumentError("Invalid argument(s). A command is required, after '--'.");
  const source = progressSource(flags);
  const body = bodyFor(flags.given('name') ? flags.text('name') : basename(program));
  body.set('start', true);
  body.set('command', command.join(' '));
  if (flags.given('percent')) body.set('mpsPercent', flags.int('percent'));
  let workload: JsonMap;
  try {
    workload = asMap(await client.callRoute('POST', workloadsRoute, body));
  } catch (error) {
    throw wrapError(error, 'Unable to register the workload');
  }
  const route = `${workloadsRoute}/${asText(workload.get('id'))}`;
  const reports =
    source && (await openReports(source, (measured) => client.callRoute('PUT', route, rateBody(measured))));
  let exitCode: number;
  try {
    exitCode = await runToEnd(
      command,
      environment(workload, { client, settings }, reports?.receiver !== undefined),
      (pid) => notifyServer(client, 'PUT', route, processBody(pid)),
      reports?.receiver,
    );
  } finally {
    await reports?.close();
    await notifyServer(client, 'DELETE', route);
  }
  if (exitCode !== 0) throw new WskError('', { exitCode, showMessage: false });
}

/** The folder of the Python module that reports a training's progress. */
const trainingFolder = fileURLToPath(new URL('../../../../runtimes/training', import.meta.url));

/**
 * The command's environment: this process's, the settings of an MPS client, and all that the module gpuwhisk_training
 * needs to report the workload's rate.
 */
function environment(
  workload: JsonMap,
  { client, settings }: Pick<CommandContext, 'client' | 'settings'>,
  isRead: boolean,
): NodeJS.ProcessEnv {
  const added: JsonMap = new Map([
    ...asMap(workload.get('env')),
    ['GPUWHISK_WORKLOAD', asText(workload.get('id'))],
    ['GPUWHISK_WORKLOAD_API', `${client.base}/${client.apiVersion}`],
    ['GPUWHISK_WORKLOAD_AUTH', settings.auth],
    ['PYTHONPATH', trainingFolder],
  ]);
  if (settings.insecure) added.set('GPUWHISK_WORKLOAD_INSECURE', '1');
  // Python would keep lines for a pipe until it has 8 KiB of them.
  if (isRead && process.env['PYTHONUNBUFFERED'] === undefined) added.set('PYTHONUNBUFFERED', '1');
  const env: NodeJS.ProcessEnv = { ...process.env };
  for (const [name, value] of added) {
    const own = searchLists.includes(name) ? env[name] : undefined;
    env[name] = own ? `${asText(value)}:${own}` : asText(value);
  }
  return env;
}

function rateBody({ rate, isStalled }: MeasuredRate): JsonMap {
  return new Map<string, number | boolean>([['rate', rate], ...(isStalled ? [['stalled', true] as const] : [])]);
}

const reportEveryMs = 1000;

/** Reports of a command's progress, once a second. */
interface Reports {
  /** A receiver for each stream of the command; absent: a log is read. */
  receiver?: () => (bytes: Buffer) => void;
  /** Ends the reports; the last one has arrived then. */
  close(): Promise<void>;
}

/** Begins to report the progress of a command by `send`. A failure is printed once until a report arrives again. */
async function openReports(
  source: ProgressSource,
  send: (measured: MeasuredRate) => Promise<unknown>,
): Promise<Reports> {
  const reader = new ProgressReader(source);
  const log = source.file === undefined ? undefined : await followLog(source.file, reader.receiver());
  let pending: Promise<void> | undefined;
  let hasFailed = false;
  const report = async (measured: MeasuredRate): Promise<void> => {
    try {
      await send(measured);
      hasFailed = false;
    } catch (error) {
      if (!hasFailed) printError(`Unable to tell the server of the workload's rate: ${messageOf(error)}`);
      hasFailed = true;
    }
  };
  const timer = setInterval(() => {
    const measured = pending === undefined ? reader.next() : undefined;
    if (measured !== undefined) pending = report(measured).finally(() => (pending = undefined));
  }, reportEveryMs);
  return {
    ...(log === undefined && { receiver: () => reader.receiver() }),
    async close() {
      clearInterval(timer);
      log?.stop();
      await pending;
    },
  };
}

/** A process's number, and, if the system tells it, its start time in clock ticks since the boot. */
function processBody(pid: number): JsonMap {
  const body: JsonMap = new Map([['pid', pid]]);
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return body; // The system has no such file, or the process has ended already.
  }
  // The fields after the name, which may hold any character.
  const start = Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[19]);
  if (Number.isSafeInteger(start) && start > 0) body.set('processStart', start);
  return body;
}

/** Notifies the server of the workload. The command continues if the server cannot be reached. */
async function notifyServer(client: Client, method: 'PUT' | 'DELETE', route: string, body?: JsonMap): Promise<void> {
  try {
    await client.callRoute(method, route, body);
  } catch (error) {
    // The node may have seen the end of its process first.
    if (method === 'DELETE' && error instanceof WskError && error.exitCode === notFound) return;
    printError(`Unable to tell the server of the workload: ${messageOf(error)}`);
  }
}

/**
 * Runs a command with this process's terminal; resolves with its exit code, as a shell has it. With `receiver` the
 * command's output goes through this process, and to a receiver for each stream.
 */
function runToEnd(
  [program = '', ...args]: string[],
  env: NodeJS.ProcessEnv,
  started: (pid: number) => Promise<void>,
  receiver?: () => (bytes: Buffer) => void,
): Promise<number> {
  return new Promise((resolve, reject) => {
    // A terminal's Ctrl-C reaches the command by itself; signals to this process alone are passed on. The handlers are
    // installed before the command starts: a signal between start and installation would leave the command running.
    const ignore = (): void => undefined;
    const passOn = (signal: NodeJS.Signals): void => void child.kill(signal);
    process.on('SIGINT', ignore).on('SIGTERM', passOn).on('SIGHUP', passOn);
    const stopListening = (): void => void process.off('SIGINT', ignore).off('SIGTERM', passOn).off('SIGHUP', passOn);
    const output = receiver === undefined ? 'inherit' : 'pipe';
    const child: ChildProcess = spawn(program, args, { env, stdio: ['inherit', output, output] });
    if (receiver !== undefined) {
      child.stdout?.on('data', receiver()).pipe(process.stdout, { end: false });
      child.stderr?.on('data', receiver()).pipe(process.stderr, { end: false });
    }
    let told: Promise<void> = Promise.resolve();
    child.on('spawn', () => {
      if (child.pid !== undefined) told = started(child.pid);
    });
    child.on('error', (error) => {
      stopListening();
      reject(new WskError(`Unable to start '${program}': ${messageOf(error)}`));
    });
    // Output may arrive after the exit.
    child.on(receiver === undefined ? 'exit' : 'close', (code: number | null, signal: NodeJS.Signals | null) => {
      stopListening();
      void told.then(() => resolve(code ?? 128 + (signal ? constants.signals[signal] : 0)));
    });
  });
}
