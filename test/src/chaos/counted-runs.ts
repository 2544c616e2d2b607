import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { LinkedNamespace } from './linked-namespaces.js';

const program = fileURLToPath(new URL('./run-counter.js', import.meta.url));

const port = 8000;

/** Counter of function runs that functions reach over HTTP. */
export interface CountedRuns {
  /** URL that functions are given as the platform's API host. */
  url: string;
  /** Every run so far, in order, with the process id that the function has in its own PID namespace. */
  runs(): { activationId: string; pid: number }[];
  stop(): Promise<void>;
}

/** Code of a function that reports its run to the counter, then takes `ms`. */
export const toldCode = `async function main({ n, ms = 0 }) {
  const { __OW_API_HOST: url, __OW_ACTIVATION_ID: id } = process.env;
  await fetch(url + '/' + id + '/' + process.pid, { signal: AbortSignal.timeout(10000) });
  await new Promise((resolve) => setTimeout(resolve, ms));
  return { n };
}`;

/** Starts a counter in its own network namespace; `file` holds the runs. */
export async function countRuns(file: string, { address, before }: LinkedNamespace): Promise<CountedRuns> {
  writeFileSync(file, '');
  const [command = '', ...args] = [...before, process.execPath, program, address, String(port), file];
  const child = spawn(command, args, {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, NODE_OPTIONS: '' },
  });
  const exited = once(child, 'exit');
  const early = exited.then(([code]) => Promise.reject(new Error(`the counter ended with ${String(code)}`)));
  await Promise.race([once(child.stdout, 'data'), early]);
  early.catch(() => undefined);
  return {
    url: `http://${address}:${port}`,
    runs: () =>
      readFileSync(file, 'utf8')
        .split('\n')
        .filter(Boolean)
        .map((line) => {
          const [, activationId = '', pid] = line.split('/');
          return { activationId, pid: Number(pid) };
        }),
    async stop() {
      child.stdin.end();
      await exited;
    },
  };
}
