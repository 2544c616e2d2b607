import { createClient } from '../client/client.js';
import { WskError } from '../errors.js';
import { stringify } from '../json/json.js';
import type { Deployer } from '../project/deployer.js';
import { fetchRuntimes } from '../project/runtimes.js';
import type { Settings } from '../settings.js';
import { newestOnly, type Save } from './newest-save.js';
import { failedOutcome, followRun, sourcesOf, startRun, type StartedRun } from './one-run.js';
import { devHelp, readDevOptions, type DevOptions } from './options.js';
import { startOwnPlatform } from './own-platform.js';
import { forPeople, forPrograms, type Shown } from './show.js';
import { readTarget, targetAt, type ReadTarget, type Target } from './target.js';
import { watchTarget } from './watch.js';

/** Runs `gpuwhisk dev` and returns its exit code: 0, or 1. Throws UsageError and WskError. */
export async function runDev(words: readonly string[]): Promise<number> {
  const options = readDevOptions(words);
  if (options === undefined) {
    process.stdout.write(devHelp);
    return 0;
  }
  const target = targetAt(options.path);
  const shown = options.json ? forPrograms : forPeople;
  const { interrupted, release } = untilInterrupted();
  try {
    if (options.inspect) {
      const { runInspected } = await import('./inspect.js');
      return await runInspected(target, options, shown, interrupted);
    }
    if (options.isRemote) return await develop(target, options, shown, options.settings, interrupted);
    return await developOnOwnPlatform(target, options, shown, interrupted);
  } finally {
    release();
  }
}

async function developOnOwnPlatform(
  target: Target,
  options: DevOptions,
  shown: Shown,
  interrupted: Promise<void>,
): Promise<number> {
  const platform = await startOwnPlatform(interrupted, options.gpus);
  if (platform === undefined) return options.once ? 1 : 0;
  const lost = platform.ended.then(() => {
    throw new WskError('The platform for this command has ended.');
  });
  lost.catch(() => undefined);
  try {
    const settings = { ...options.settings, apiHost: platform.apiHost, auth: platform.auth };
    return await Promise.race([develop(target, options, shown, settings, interrupted), lost]);
  } finally {
    await platform.close();
  }
}

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * `interrupted` resolves at Ctrl-C, or at the end that another program asks for. Further signals are ignored until `release`
 * is called: they would end this process before it has removed its platform.
 */
function untilInterrupted(): { interrupted: Promise<void>; release(): void } {
  let interrupt: () => void = () => undefined;
  const interrupted = new Promise<void>((resolve) => (interrupt = resolve));
  for (const signal of signals) process.on(signal, interrupt);
  const release = (): void => {
    for (const signal of signals) process.off(signal, interrupt);
  };
  return { interrupted, release };
}

async function develop(
  target: Target,
  { once, parameters }: DevOptions,
  shown: Shown,
  settings: Settings,
  interrupted: Promise<void>,
): Promise<number> {
  const client = createClient(settings, 'off');
  const runtimes = await Promise.race([fetchRuntimes(client), interrupted]);
  if (runtimes === undefined) return once ? 1 : 0;
  // As 'wsk project deploy' without --verbose.
  const warn = (): void => undefined;
  const deployer: Deployer = { client, settings, namespace: '_', info: () => undefined, warn };
  const compose = { runtimes, namespace: '_', strict: false, commandLine: new Map(), projectName: '', warn };
  let count = 0;
  /** What the last run ran, so that a save that changes nothing runs nothing. */
  let last = '';
  /** Reads, stores and starts the action. Returns the rest of the run; undefined if nothing is to run. */
  const start = async (
    { atMs, always }: Save,
    isSuperseded: () => boolean,
  ): Promise<(() => Promise<boolean>) | undefined> => {
    let read: ReadTarget;
    try {
      read = await readTarget(target, compose);
    } catch (error) {
      const failed = failedOutcome(error, atMs);
      if (isSuperseded()) return undefined;
      last = '';
      shown.ended(++count, target.path, failed, []);
      return () => Promise.resolve(false);
    }
    const { action, name } = read;
    const what = stringify([action.exec, action.parameters, action.annotations, action.limits]);
    if (isSuperseded() || (what === last && !always)) return undefined;
    last = what;
    const number = ++count;
    // A run that was overtaken by a save goes on, and is shown no more.
    const isShown = (): boolean => number === count;
    shown.began(number, name);
    const lines: string[] = [];
    const times = { savedMs: atMs, readMs: performance.now() };
    let started: StartedRun;
    try {
      started = await startRun(deployer, read, parameters);
    } catch (error) {
      shown.ended(number, name, failedOutcome(error, atMs), lines);
      return () => Promise.resolve(false);
    }
    return async () => {
      const outcome = await followRun(client, started, sourcesOf(target), times, (line) => {
        lines.push(line);
        if (isShown()) shown.line(number, line);
      });
      if (isShown()) shown.ended(number, name, outcome, lines);
      return outcome.ok;
    };
  };
  if (once) {
    const done = start({ atMs: performance.now(), always: true }, () => false).then((rest) => rest?.());
    return (await Promise.race([done, interrupted])) === true ? 0 : 1;
  }
  let fail: (error: unknown) => void = () => undefined;
  const failed = new Promise<never>((_, reject) => (fail = reject));
  // Only the start of a run is waited for: a long run does not hold up the next save.
  const save = newestOnly(async (one, isSuperseded) => {
    const rest = await start(one, isSuperseded);
    rest?.().catch(fail);
  }, fail);
  return loop(target, save, shown, Promise.race([interrupted, failed]));
}

/** Runs at once, after each save, and after each line from the terminal, until `ended`. */
async function loop(target: Target, save: (save: Save) => void, shown: Shown, ended: Promise<void>): Promise<number> {
  const watched = watchTarget(target, (atMs) => save({ atMs, always: false }));
  const again = (): void => save({ atMs: performance.now(), always: true });
  if (process.stdin.isTTY) process.stdin.on('data', again);
  again();
  shown.say(`Watching ${target.path}; Enter runs it again, Ctrl-C ends.`);
  try {
    await ended;
    return 0;
  } finally {
    watched.close();
    process.stdin.off('data', again).pause();
  }
}
