// The hostile namespaces of a bench, in a process of their own.
import { fork } from 'node:child_process';
import { setPriority } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { Cleanup } from '../cleanup.js';
import type { HostileNews, HostileOrder, StruckLoad } from './hostile-process.js';

/** A process that acts for hostile namespaces. Its functions reject if it fails or ends. */
export interface Hostile {
  /** Has the process do what must precede its load. */
  prepare(order: Extract<HostileOrder, { do: 'prepare' | 'burn' }>): Promise<void>;
  /** Begins the load. */
  strike(): Promise<void>;
  /** Ends the load, and the process. */
  stop(): Promise<StruckLoad>;
}

const answerTimeoutMs = 180_000;
/** Hostile clients would be on other machines: they are not to push the victim's client off its processor. */
const niceness = 15;

/** Starts the process; `cleanup` ends it. */
export function startHostile(cleanup: Cleanup): Hostile {
  const child = fork(fileURLToPath(new URL('hostile-process.js', import.meta.url)));
  if (child.pid !== undefined) setPriority(child.pid, niceness);
  cleanup.add('hostile namespaces', () => void child.kill('SIGKILL'));
  const ask = (order: HostileOrder, done: string): Promise<Extract<HostileNews, { done: string }>> =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => end(new Error(`they have not ${done} in ${answerTimeoutMs} ms`)), answerTimeoutMs);
      const onExit = (code: number | null): void => end(new Error(`their process ended with ${code}`));
      const onNews = (news: HostileNews): void => {
        if ('failed' in news) end(new Error(news.failed));
        else if (news.done === done) end(news);
      };
      const end = (result: Error | Extract<HostileNews, { done: string }>): void => {
        clearTimeout(timer);
        child.off('exit', onExit).off('message', onNews);
        if (result instanceof Error) reject(new Error(`The hostile namespaces: ${result.message}`));
        else resolve(result);
      };
      child.on('exit', onExit).on('message', onNews);
      child.send(order);
    });
  return {
    async prepare(order) {
      await ask(order, 'prepared');
    },
    async strike() {
      await ask({ do: 'strike' }, 'struck');
    },
    async stop() {
      const news = await ask({ do: 'stop' }, 'stopped');
      if (news.done !== 'stopped') throw new Error('the hostile namespaces told no load');
      return news.load;
    },
  };
}
