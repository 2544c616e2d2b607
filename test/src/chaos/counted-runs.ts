import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { LinkedNamespace } from './linked-namespaces.js';

const program = fileURLToPath(new URL('./run-counter.js', import.meta.url));

const port = 8000;

/** Where functions tell that they run. */
export interface CountedRuns {
  /** What they are given as the platform's API. */
  url: string;
  /** Every run so far, in order, with the id of its process in its own PID namespace. */
  runs(): { activationId: string; pid: number }[];
  stop(): Promise<void>;
}

/** Code of a function that tells that it runs, and then takes `ms`. */
export const toldCode = `async function main({ n, ms = 0 }) {
  const { __OW_API_HOST: url, __OW_ACTIVATION_ID: id } = process.env;
  await fetch(url + '/' + id + '/' + process.pid, { signal: AbortSignal.timeout(10000) });
  await new Promise((resolve) => setTimeout(resolve, ms));
  return { n };
}`;

/** Counts runs in `file`, from a namespace of its own. */
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
