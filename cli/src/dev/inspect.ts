import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { messageOf, WskError } from '../errors.js';
import { asMap, asNumber, asText, body, stringify, type Json, type JsonMap } from '../json/json.js';
import { parseJson } from '../json/parse.js';
import type { Runtimes } from '../project/runtimes.js';
import { newestOnly, type Save } from './newest-save.js';
import { failedOutcome, sourcesOf, type Outcome } from './one-run.js';
import type { DevOptions } from './options.js';
import { placeIn } from './place-in-file.js';
import type { Shown } from './show.js';
import { readTarget, type ReadTarget, type Target } from './target.js';
import { watchTarget } from './watch.js';

const folder = fileURLToPath(new URL('../../../runtimes/inspect/', import.meta.url));

/** The programs that run each family's actions for a debugger. */
const programs: Readonly<Record<string, (python: string) => [program: string, ...args: string[]]>> = {
  nodejs: () => [process.execPath, '--enable-source-maps', `${folder}run-inspected.cjs`],
  python: (python) => [python, '-X', 'frozen_modules=off', '-u', `${folder}run_inspected.py`],
};

const versions = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, at) => from + at);
/** Kinds that a manifest may name: all run in the Node.js or Python of this machine. */
const runtimes: Runtimes = {
  kinds: new Map([
    ['nodejs', ['nodejs:default', ...versions(14, 30).map((one) => `nodejs:${one}`)]],
    ['python', ['python:default', 'python:3', ...versions(8, 20).map((one) => `python:3.${one}`)]],
  ]),
  defaults: new Map([
    ['nodejs', 'nodejs:default'],
    ['python', 'python:default'],
  ]),
};

/** How a debugger is attached, in words. */
const howToAttach: Readonly<Record<string, string>> = {
  nodejs: 'chrome://inspect, or "Attach to Node Process" of an editor',
  python: 'an editor\'s "Python Debugger: Remote Attach"',
};

/** Runs an action in a process of its own that a debugger can attach to, again after each save. Returns the exit code. */
export async function runInspected(
  target: Target,
  { parameters, once }: DevOptions,
  shown: Shown,
  interrupted: Promise<void>,
): Promise<number> {
  const warn = (): void => undefined;
  const compose = { runtimes, namespace: '_', strict: false, commandLine: new Map(), projectName: '', warn };
  const family = familyOf(await readTarget(target, compose));
  const program = programs[family];
  if (program === undefined) throw new WskError(`--inspect is for Node.js and Python, not for '${family}'.`);
  const python = process.env['PYTHON'] ?? 'python3';
  if (family === 'python') requireDebugpy(python);
  const child = start(program(python));
  // For an end without `end`, as after a closed pipe: a process that waits for its debugger does not see that its input ends.
  process.once('exit', () => child.kill('SIGKILL'));
  let count = 0;
  /** What the last run ran, so that a save that changes nothing runs nothing. */
  let last = '';
  let lines: string[] = [];
  const print = (line: string): void => {
    lines.push(line);
    shown.line(count, line);
  };
  for (const stream of [child.stdout, child.stderr] as Readable[]) {
    createInterface({ input: stream }).on('line', (line) => {
      // Node.js's own lines about the debugger say less than those below.
      if (!/^(Debugger (listening|attached|ending)|For help, see|Waiting for the debugger)/.test(line)) print(line);
    });
  }
  return new Promise<number>((resolve, reject) => {
    let answered: (told: JsonMap) => void = () => undefined;
    const run = async ({ atMs, always }: Save, isSuperseded: () => boolean): Promise<void> => {
      let read: ReadTarget;
      try {
        read = await readTarget(target, compose);
        if (familyOf(read) !== family) throw new WskError(`This process runs ${family}: start the command again.`);
      } catch (error) {
        if (once) throw error;
        const failed = failedOutcome(error, atMs);
        if (isSuperseded()) return;
        last = '';
        shown.ended(++count, target.path, failed, []);
        return;
      }
      const { action } = read;
      const what = stringify([action.exec, action.parameters]);
      if (isSuperseded() || (what === last && !always)) return;
      last = what;
      const main = asText(action.exec.get('main')) || 'main';
      const value = new Map([...action.parameters, ...parameters]);
      const env = body({ __OW_ACTION_NAME: `/_/${action.name}`, __OW_NAMESPACE: '_' });
      const source = { source: target.path, isFolder: target.isFolder, main, value, env };
      const sentMs = performance.now();
      lines = [];
      shown.began(++count, action.name);
      const told = await new Promise<JsonMap>((resolve) => {
        answered = resolve;
        child.stdin?.write(`${stringify(body(source))}\n`);
      });
      const outcome = outcomeOf(told, target, performance.now() - sentMs);
      // What it has printed comes by other pipes.
      await sleep(20);
      shown.ended(count, action.name, outcome, lines);
      if (once) end(outcome.ok ? 0 : 1);
    };
    const save = newestOnly(run, reject);
    const watched = once ? undefined : watchTarget(target, (atMs) => save({ atMs, always: false }));
    const end = (code: number): void => {
      watched?.close();
      child.kill('SIGKILL');
      resolve(code);
    };
    child.once('error', reject);
    child.once('exit', (code) => {
      watched?.close();
      reject(new WskError(`The process that runs the action has ended with ${code}.`));
    });
    void interrupted.then(() => end(once ? 1 : 0));
    createInterface({ input: child.stdio[3] as Readable }).on('line', (line) => {
      const told = asMap(parseJson(line));
      const url = told.get('url');
      if (url !== undefined) shown.say(`The debugger's address is ${asText(url)} (${howToAttach[family]}).`);
      else if (told.has('waiting')) shown.say('Waiting for the debugger to attach.');
      else answered(told);
    });
    save({ atMs: performance.now(), always: true });
  });
}

/** `nodejs`, `python` or another language, of the action's kind. */
function familyOf({ action }: ReadTarget): string {
  return asText(action.exec.get('kind')).split(':', 1)[0] ?? '';
}

function outcomeOf(told: Map<string, Json>, target: Target, total: number): Outcome {
  const ok = told.get('ok') === true;
  const error = asText(told.get('error')).trimEnd();
  const result = told.get('result');
  const runMs = told.get('runMs');
  const at = placeIn(error, { ...sourcesOf(target), isOwn: true });
  return {
    ok,
    ...(result !== undefined && { result }),
    ...(!ok && { error: error || `application error: ${asText(asMap(result).get('error'))}` }),
    ...(at && { at }),
    ms: { total, ...(runMs !== undefined && { run: asNumber(runMs) }) },
  };
}

function start([program, ...args]: [string, ...string[]]): ChildProcess {
  try {
    // A __pycache__ in a watched folder would count as a save.
    const env = { ...process.env, PYTHONDONTWRITEBYTECODE: '1' };
    return spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe', 'pipe'], detached: true, env });
  } catch (error) {
    throw new WskError(`'${program}' cannot be started: ${messageOf(error)}`);
  }
}

/** @throws WskError with what to do if a Python has no debugpy. */
function requireDebugpy(python: string): void {
  const { error, status } = spawnSync(python, ['-c', 'import debugpy'], { timeout: 20_000, stdio: 'ignore' });
  if (error !== undefined) throw new WskError(`'${python}' cannot be started: ${messageOf(error)}`);
  if (status === 0) return;
  throw new WskError(
    `'${python}' cannot import debugpy, which --inspect needs. Install it with '${python} -m pip install debugpy', or name another Python by the variable PYTHON.`,
  );
}
