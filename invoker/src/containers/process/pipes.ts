import { closeSync, existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';

interface PipeAddon {
  /** `[read, write]`, descriptors. */
  make(): [number, number];
}

const addonPath = fileURLToPath(new URL('../../../../native/build/pipe.node', import.meta.url));
let addon: PipeAddon | undefined;

/** What a child process is to print into. */
export interface OutputPipe {
  /** For the child's stdio. Without the addon Node's own kind, a socket, which nobody can open by its path. */
  stdio: number | 'pipe';
  /** What the child prints; undefined where `stdio` is `'pipe'`, of which Node makes one. */
  readable: Readable | undefined;
  /** Closes this process's copy of the child's end: once the child has its own, or there is to be none. Once. */
  release(): void;
}

/** Makes a pipe. Throws where no more descriptors are to be had. */
export function openOutputPipe(): OutputPipe {
  if (addon === undefined && existsSync(addonPath)) addon = createRequire(import.meta.url)(addonPath) as PipeAddon;
  if (addon === undefined) return { stdio: 'pipe', readable: undefined, release: () => undefined };
  const [read, write] = addon.make();
  const readable = new Socket({ fd: read, readable: true, writable: false });
  return { stdio: write, readable, release: () => closeSync(write) };
}
