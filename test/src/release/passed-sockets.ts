// Starts servers as systemd starts a service with a socket unit.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const holder = fileURLToPath(new URL('../../src/release/holder.py', import.meta.url));
const sockets = 3;

/** Listening sockets that outlive the servers that get them. */
export interface PassedSockets {
  /** Their ports on 127.0.0.1. */
  readonly ports: readonly number[];
  /** Starts a program that gets the sockets, its output appended to a file. Resolves with its process's number. */
  start(words: readonly string[], output: string): Promise<number>;
  /** Resolves with the status of a process, negative for a signal. */
  ended(pid: number): Promise<number>;
  close(): void;
}

/** Opens three listening sockets. Needs python3. */
export async function openSockets(): Promise<PassedSockets> {
  const child = spawn('python3', [holder, String(sockets)], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async (): Promise<unknown> => {
    const { value, done } = await lines.next();
    if (done === true) throw new Error('the holder of the sockets ended');
    return JSON.parse(value);
  };
  const ask = (question: object): Promise<unknown> => {
    child.stdin.write(`${JSON.stringify(question)}\n`);
    return next();
  };
  const ports = (await next()) as number[];
  return {
    ports,
    start: async (words, output) => Number(await ask({ start: words, output })),
    ended: async (pid) => Number(await ask({ wait: pid })),
    close: () => void child.kill('SIGKILL'),
  };
}
