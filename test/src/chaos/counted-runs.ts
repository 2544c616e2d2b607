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
  /** The activation of each sign of life of runs with `beatingCode` so far, in order. */
  beats(): string[];
  stop(): Promise<void>;
}

/** Code of a function that reports its run to the counter, then takes `ms`. */
export const toldCode = `async function main({ n, ms = 0 }) {
  const { __OW_API_HOST: url, __OW_ACTIVATION_ID: id } = process.env;
  await fetch(url + '/' + id + '/' + process.pid, { signal: AbortSignal.timeout(10000) });
  await new Promise((resolve) => setTimeout(resolve, ms));
  return { n };
}`;

/** Python code of a training job whose runs give signs of life to the counter, and die after `seconds`. */
export const beatingCode = `import os, signal, time, urllib.request
import gpuwhisk_training

def main(args):
    url = "%s/beat/%s" % (os.environ["__OW_API_HOST"], os.environ["__OW_ACTIVATION_ID"])
    end = time.monotonic() + args["seconds"]
    while not gpuwhisk_training.stopping():
        urllib.request.urlopen(url, timeout=10).read()
        if time.monotonic() > end:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.1)
    return {}
`;

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
  const paths = (): string[] => readFileSync(file, 'utf8').split('\n').filter(Boolean);
  const beat = '/beat/';
  return {
    url: `http://${address}:${port}`,
    runs: () =>
      paths()
        .filter((path) => !path.startsWith(beat))
        .map((path) => {
          const [, activationId = '', pid] = path.split('/');
          return { activationId, pid: Number(pid) };
        }),
    beats: () => paths().flatMap((path) => (path.startsWith(beat) ? [path.slice(beat.length)] : [])),
    async stop() {
      child.stdin.end();
      await exited;
    },
  };
}
