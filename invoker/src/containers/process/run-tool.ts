import { spawn } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import { delimiter, join } from 'node:path';

/** A tool that has not ended by then is called again, with more time: the machine is busy. */
const timeoutsMs = [10_000, 30_000];
const maxTextBytes = 64 * 1024;
const maxOutputBytes = 1024 * 1024;

/** The full path of a program of the host; undefined if there is none. Looks where administrators' tools lie, too. */
export async function findTool(name: string): Promise<string | undefined> {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/sbin', '/usr/bin', '/bin'];
  for (const folder of folders.filter((each) => each !== '')) {
    const path = join(folder, name);
    const found = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (found) return path;
  }
  return undefined;
}

/** A program of the host had not ended in time; that says nothing of what the host allows. */
export class ToolTimeoutError extends Error {
  override name = 'ToolTimeoutError';
}

/**
 * Runs a program with `input` on its standard input. Rejects with what it printed unless it exits with 0, and with
 * ToolTimeoutError.
 */
export async function runTool(path: string, args: readonly string[], input = ''): Promise<void> {
  await readTool(path, args, input);
}

/** As runTool, and resolves with its standard output, of which it takes up to a megabyte. */
export async function readTool(path: string, args: readonly string[], input = ''): Promise<string> {
  for (const timeoutMs of timeoutsMs) {
    try {
      return await readOnce(path, args, input, timeoutMs);
    } catch (error) {
      if (!(error instanceof ToolTimeoutError)) throw error;
    }
  }
  throw new ToolTimeoutError(`'${path} ${args.join(' ')}' did not end in ${timeoutsMs.length} calls`);
}

function readOnce(path: string, args: readonly string[], input: string, timeoutMs: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(path, args, { stdio: ['pipe', 'pipe', 'pipe'], timeout: timeoutMs, killSignal: 'SIGKILL' });
    let text = '';
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => {
      if (output.length < maxOutputBytes) output += chunk.toString();
    });
    child.stderr.on('data', (chunk: Buffer) => {
      if (text.length < maxTextBytes) text += chunk.toString();
    });
    // It may exit without having read all; its status says whether that matters.
    child.stdin.on('error', () => undefined);
    child.on('error', reject);
    child.on('close', (code) => {
      if (code === 0) resolve(output);
      else if (child.killed) reject(new ToolTimeoutError(`${path} had not ended after ${timeoutMs} ms`));
      else reject(new Error(text.trim() || `${path} ended with ${code}`));
    });
    child.stdin.end(input);
  });
}
