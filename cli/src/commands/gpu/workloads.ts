// Processes on GPUs that are no functions: registered by hand, or started here as MPS clients.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { basename } from 'node:path';
import type { Flags } from '../../args/flags.js';
import type { Client } from '../../client/client.js';
import { checkArgs, type CommandContext } from '../../command.js';
import { argumentError, messageOf, usageError, wrapError, WskError } from '../../errors.js';
import { asList, asMap, asText, type JsonMap } from '../../json/json.js';
import { printError, stdout } from '../../terminal.js';
import { table } from './format.js';

/** Route of the workloads. */
const workloadsRoute = 'gpu/workloads';

/** The body of a request that registers a workload, from the flags. @throws WskError */
function workloadBody(name: string, flags: Flags): JsonMap {
  const body: JsonMap = new Map([['name', name]]);
  if (flags.given('device')) body.set('device', flags.text('device'));
  if (flags.given('memory')) body.set('memoryMiB', flags.int('memory'));
  if (flags.given('degradation')) {
    const fraction = Number(flags.text('degradation'));
    if (!(fraction >= 0 && fraction <= 1)) throw usageError('--degradation must be a number from 0 to 1');
    body.set('maxDegradation', fraction);
  }
  return body;
}

async function add({ args: [, ...args], client, flags }: CommandContext): Promise<void> {
  checkArgs(args, 1, 1, 'A workload name is required.');
  const [name = ''] = args;
  const body = workloadBody(name, flags);
  if (flags.given('pid')) body.set('pid', flags.int('pid'));
  try {
    const added = asMap(await client.callRoute('POST', workloadsRoute, body));
    stdout.print(`${stdout.ok} registered workload ${asText(added.get('id'))} on ${asText(added.get('device'))}\n`);
  } catch (error) {
    throw wrapError(error, 'Unable to register the workload');
  }
}

/** `wsk gpu workloads`, and `wsk gpu workload list`. */
export async function listWorkloads({ args, client }: CommandContext): Promise<void> {
  checkArgs(args, 0, 0, 'No arguments are required.');
  let workloads: JsonMap[];
  try {
    workloads = asList(await client.callRoute('GET', workloadsRoute)).map(asMap);
  } catch (error) {
    throw wrapError(error, 'Unable to obtain the list of workloads');
  }
  const fields = ['id', 'name', 'origin', 'invoker', 'device', 'pid', 'memoryMiB', 'namespace'];
  const titles = ['Workload', 'Name', 'Origin', 'Invoker', 'GPU', 'Process', 'MiB', 'Namespace'];
  const rows = workloads.map((one) => fields.map((field) => asText(one.get(field)) || '-'));
  const { header, rows: lines } = table(titles, rows, ['Process', 'MiB']);
  stdout.print(stdout.bold(header) + lines.join(''));
}

async function remove({ args: [, ...args], client }: CommandContext): Promise<void> {
  checkArgs(args, 1, 1, 'A workload id is required.');
  const [id = ''] = args;
  try {
    await client.callRoute('DELETE', `${workloadsRoute}/${encodeURIComponent(id)}`);
  } catch (error) {
    throw wrapError(error, `Unable to remove workload '${id}'`);
  }
  stdout.print(`${stdout.ok} removed workload ${id}\n`);
}

/** `wsk gpu workload rate ID RATE`. */
async function reportRate({ args: [, ...args], client, flags }: CommandContext): Promise<void> {
  checkArgs(args, 2, 2, 'A workload id and its rate are required.');
  const [id = '', rate = ''] = args;
  const positive = (value: string, name: string): number => {
    if (!(Number(value) > 0)) throw usageError(`${name} must be a number above 0`);
    return Number(value);
  };
  const body: JsonMap = new Map([['rate', positive(rate, 'the rate')]]);
  if (flags.given('baseline')) body.set('baselineRate', positive(flags.text('baseline'), '--baseline'));
  try {
    await client.callRoute('PUT', `${workloadsRoute}/${encodeURIComponent(id)}`, body);
  } catch (error) {
    throw wrapError(error, `Unable to tell the rate of workload '${id}'`);
  }
  stdout.print(`${stdout.ok} told the rate of workload ${id}\n`);
}

const verbs: Record<string, (context: CommandContext) => Promise<void>> = {
  add,
  rate: reportRate,
  list: ({ args: [, ...args], ...context }) => listWorkloads({ ...context, args }),
  remove,
  run: runWorkload,
};

/** `wsk gpu workload`. */
export async function workload(context: CommandContext): Promise<void> {
  const [verb] = context.args;
  const known = verb === undefined || !Object.hasOwn(verbs, verb) ? undefined : verbs[verb];
  if (known === undefined)
    throw argumentError('Invalid argument(s). One of add, list, rate, remove and run is required.');
  return known(context);
}

/** The exit code of an answer of 404. */
const notFound = 404 - 256;
/** Lists of paths: settings are put before the caller's value. Other variables replace the caller's value. */
const searchLists = ['LD_LIBRARY_PATH', 'LD_PRELOAD'];

/**
 * `wsk gpu workload run -- COMMAND`: registers the command, starts it as an MPS client, and removes the registration
 * when it has ended.
 */
async function runWorkload({ args: [, ...command], client, flags }: CommandContext): Promise<void> {
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
    exitCode = await runToEnd(command, environment(workload), (pid) =>
      notifyServer(client, 'PUT', route, processBody(pid)),
    );
  } finally {
    await notifyServer(client, 'DELETE', route);
  }
  if (exitCode !== 0) throw new WskError('', { exitCode, showMessage: false });
}

/**
 * The command's environment: this process's, the settings of an MPS client, and the workload's id, with which it can
 * report its rate.
 */
function environment(workload: JsonMap): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = { ...process.env, GPUWHISK_WORKLOAD: asText(workload.get('id')) };
  for (const [name, value] of asMap(workload.get('env'))) {
    const own = searchLists.includes(name) ? env[name] : undefined;
    env[name] = own ? `${asText(value)}:${own}` : asText(value);
  }
  return env;
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

/** Runs a command with this process's terminal; resolves with its exit code, as a shell has it. */
function runToEnd(
  [program = '', ...args]: string[],
  env: NodeJS.ProcessEnv,
  started: (pid: number) => Promise<void>,
): Promise<number> {
  return new Promise((resolve, reject) => {
    // A terminal's Ctrl-C reaches the command by itself; signals to this process alone are passed on. The handlers are
    // installed before the command starts: a signal between start and installation would leave the command running.
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
