import type { Clock } from '@gpuwhisk/common/system/clock';
import { watchFolder } from './folder-watch.js';
import { runProgram } from './run-program.js';
import type { RunJob } from './sandbox-job.js';

/** Runs jobs as the platform's user, bounded in what they fill: for hosts that have no sandboxes. */
export function hostJobs(clock: Clock): RunJob {
  return async ({ command, binds, env, folder, target, ...bounds }) => {
    const over = new AbortController();
    const stop = new AbortController();
    const seen = [{ source: folder, target }, ...binds].filter(({ source, target: inside }) => source !== inside);
    const toHost = (text: string): string =>
      seen.reduce((path, bind) => path.replaceAll(bind.target, bind.source), text);
    const [program = '', ...args] = command.map(toHost);
    const hostEnv = Object.fromEntries(Object.entries(env).map(([name, value]) => [name, toHost(value)]));
    const watched = watchFolder({ folder, ...bounds }, clock, over.signal).finally(() => stop.abort());
    watched.catch(() => undefined); // Awaited once the program has ended.
    const done = runProgram(program, args, {
      ...{ timeoutMs: bounds.timeoutMs, stop: stop.signal },
      env: { PATH: process.env.PATH, HOME: process.env.HOME, ...hostEnv },
    }).then(
      () => undefined,
      (error: unknown) => error,
    );
    const failure = await done;
    over.abort();
    const exceeded = await watched;
    if (exceeded) throw exceeded;
    if (failure !== undefined) throw failure;
  };
}
