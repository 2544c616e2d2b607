import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { constants } from 'node:os';
import type { Client } from '../../client/client.js';
import { argumentError, messageOf, WskError, wrapError } from '../../errors.js';
import { asMap, asText, type JsonMap } from '../../json/json.js';
import { printError } from '../../terminal.js';
import type { CommandContext } from '../command.js';
import { workloadBody, workloadsRoute } from './workload-body.js';

/** The exit code of an answer of 404. */
const notFound = 404 - 256;
/** Lists to which settings are added in front; others take the place of the caller's. */
const searchLists = ['LD_LIBRARY_PATH', 'LD_PRELOAD'];

/** `wsk gpu workload run -- COMMAND`: registers it, starts it as an MPS client, and forgets it when it has ended. */
export async function runWorkload({ args: [, ...command], client, flags }: CommandContext): Promise<void> {
  const [program] = command;
  if (program === undefined) throw argumentError("Invalid argument(s). A command is required, after '--'.");
  const body = workloadBody(flags.given('name') ? flags.text('name') : basename(program), flags);
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
  let exitCode: number;
  try {
    exitCode = await runToEnd(command, environment(workload), (pid) => tell(client, 'PUT', route, processBody(pid)));
  } finally {
    await tell(client, 'DELETE', route);
  }
  if (exitCode !== 0) throw new WskError('', { exitCode, showMessage: false });
}

/** The command's environment: this one's, the settings of an MPS client, and the id by which it can tell its rate. */
function environment(workload: JsonMap): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = { ...process.env, GPUWHISK_WORKLOAD: asText(workload.get('id')) };
  for (const [name, value] of asMap(workload.get('env'))) {
    const own = searchLists.includes(name) ? env[name] : undefined;
    env[name] = own ? `${asText(value)}:${own}` : asText(value);
  }
  return env;
}

/** A process's number, and when it started, in clock ticks since the boot, where the system tells that. */
function processBody(pid: number): JsonMap {
  const body: JsonMap = new Map([['pid', pid]]);
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return body; // There is no such file, or the process has ended already.
  }
  // The fields after the name, which may hold anything.
  const start = Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[19]);
  if (Number.isSafeInteger(start) && start > 0) body.set('processStart', start);
  return body;
}

/** The command goes on where the server cannot be told of it. */
async function tell(client: Client, method: 'PUT' | 'DELETE', route: string, body?: JsonMap): Promise<void> {
  try {
    await client.callRoute(method, route, body);
  } catch (error) {
    // Its node may have seen the end of its process first.
    if (method === 'DELETE' && error instanceof WskError && error.exitCode === notFound) return;
    printError(`Unable to tell the server of the workload: ${messageOf(error)}`);
  }
}

/** Runs a command with this one's terminal; resolves with its exit code, as a shell has it. */
function runToEnd(
  [program = '', ...args]: string[],
  env: NodeJS.ProcessEnv,
  started: (pid: number) => Promise<void>,
): Promise<number> {
  return new Promise((resolve, reject) => {
    // A terminal's Ctrl-C reaches the command by itself; what is sent to this process alone is passed on. Listening begins
    // before the command does: a signal that came between would leave it behind.
    const ignore = (): void => undefined;
    const passOn = (signal: NodeJS.Signals): void => void child.kill(signal);
    process.on('SIGINT', ignore).on('SIGTERM', passOn).on('SIGHUP', passOn);
    const stopListening = (): void => void process.off('SIGINT', ignore).off('SIGTERM', passOn).off('SIGHUP', passOn);
    const child = spawn(program, args, { env, stdio: 'inherit' });
    let told: Promise<void> = Promise.resolve();
    child.on('spawn', () => {
      if (child.pid !== undefined) told = started(child.pid);
    });
    child.on('error', (error) => {
      stopListening();
      reject(new WskError(`Unable to start '${program}': ${messageOf(error)}`));
    });
    child.on('exit', (code, signal) => {
      stopListening();
      void told.then(() => resolve(code ?? 128 + (signal ? constants.signals[signal] : 0)));
    });
  });
}
