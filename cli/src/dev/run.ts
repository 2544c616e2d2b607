import { createClient } from '../client/client.js';
import { messageOf, WskError } from '../errors.js';
import { stringify } from '../json/json.js';
import type { Deployer } from '../project/deployer.js';
import { fetchRuntimes } from '../project/runtimes.js';
import type { Settings } from '../settings.js';
import { runOnce, sourcesOf, type Outcome } from './one-run.js';
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
  const interrupted = untilInterrupted();
  if (options.inspect) {
    const { runInspected } = await import('./inspect.js');
    return runInspected(target, options, shown, interrupted);
  }
  if (options.isRemote) return develop(target, options, shown, options.settings, interrupted);
  const platform = await startOwnPlatform(options.gpus);
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

/** Resolves at Ctrl-C, or at the end that another program asks for. */
function untilInterrupted(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => resolve());
  });
}

async function develop(
  target: Target,
  { once, parameters }: DevOptions,
  shown: Shown,
  settings: Settings,
  interrupted: Promise<void>,
): Promise<number> {
  const client = createClient(settings, 'off');
  const runtimes = await fetchRuntimes(client);
  // As 'wsk project deploy' without --verbose.
  const warn = (): void => undefined;
  const deployer: Deployer = { client, settings, namespace: '_', info: () => undefined, warn };
  const compose = { runtimes, namespace: '_', strict: false, commandLine: new Map(), projectName: '', warn };
  let count = 0;
  /** What the last run ran, so that a save that changes nothing runs nothing. */
  let last = '';
  const run = async (savedMs: number, always: boolean): Promise<boolean> => {
    let read: ReadTarget;
    try {
      read = await readTarget(target, compose);
    } catch (error) {
      if (!(error instanceof WskError)) throw error;
      const failed: Outcome = { ok: false, error: messageOf(error).trim(), ms: { total: performance.now() - savedMs } };
      last = '';
      shown.ended(++count, target.path, failed, []);
      return false;
    }
    const { action, name } = read;
    const what = stringify([action.exec, action.parameters, action.annotations, action.limits]);
    if (what === last && !always) return true;
    last = what;
    const number = ++count;
    // A run that was overtaken by a save goes on, and is shown no more.
    const isShown = (): boolean => number === count;
    shown.began(number, name);
    const lines: string[] = [];
    const times = { savedMs, readMs: performance.now() };
    const outcome = await runOnce(deployer, read, parameters, sourcesOf(target), times, (line) => {
      lines.push(line);
      if (isShown()) shown.line(number, line);
    });
    if (isShown()) shown.ended(number, name, outcome, lines);
    return outcome.ok;
  };
  if (once) {
    const done = run(performance.now(), true);
    return (await Promise.race([done, interrupted])) === true ? 0 : 1;
  }
  return loop(target, run, shown, interrupted);
}

/** Runs at once, after each save, and after each line from the terminal, until the interruption. */
async function loop(
  target: Target,
  run: (savedMs: number, always: boolean) => Promise<boolean>,
  shown: Shown,
  interrupted: Promise<void>,
): Promise<number> {
  let fail: (error: unknown) => void = () => undefined;
  const failed = new Promise<never>((_, reject) => (fail = reject));
  const start = (savedMs: number, always: boolean): void => void run(savedMs, always).catch(fail);
  const watched = watchTarget(target, (atMs) => start(atMs, false));
  const again = (): void => start(performance.now(), true);
  if (process.stdin.isTTY) process.stdin.on('data', again);
  start(performance.now(), true);
  shown.say(`Watching ${target.path}; Enter runs it again, Ctrl-C ends.`);
  try {
    await Promise.race([interrupted, failed]);
    return 0;
  } finally {
    watched.close();
    process.stdin.off('data', again).pause();
  }
}
