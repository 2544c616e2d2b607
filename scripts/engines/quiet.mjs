// Programs whose output is of no interest: installations.
import { spawn } from 'node:child_process';

/** Runs a program without its output; resolves with whether it ended with 0 within the time, ms. */
export function succeeds(command, args, { timeout, ...options }) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { ...options, stdio: 'ignore', timeout });
    child.once('error', () => resolve(false));
    child.once('exit', (status) => resolve(status === 0));
  });
}
