import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { builtPath } from '../../../host/native-build.js';

/** Shape of native/token-server/addon.cpp. */
export interface TokenAddon {
  /** Names and order of the board's columns, and words before them. */
  columns: string[];
  headerWords: number;
  /** Blocks until the tick is not `last`, or for a second; the present tick, or null once the server is closed. */
  waitTick(board: Int32Array, last: number): number | null;
  TokenServer: new (
    options: { socketPath: string; periodMs: number; places: number; board: Int32Array },
    onEvent: (kind: 'hello' | 'gone', id: number, pid: number, uid: number, ticket: string) => void,
  ) => NativeTokenServer;
}

export interface NativeTokenServer {
  take(place: number, terms: { memoryCapBytes: number; contextBytes: number; budget: number; device: Buffer }): void;
  /** Whether the process that waits for an answer is in the place now. */
  admit(connection: number, place: number): boolean;
  refuse(connection: number, isFull: boolean): void;
  release(place: number): void;
  setMemoryCap(place: number, bytes: number): void;
  place(place: number): { taken: number; waits: number; spins: number; opened: number; memoryUsedBytes: number };
  figures(): TickFigures;
  close(): void;
}

/** How well the period is kept. */
export interface TickFigures {
  ticks: number;
  /** Periods whose decision came too late. */
  repeated: number;
  /** Times that it said nothing for so long that clients may have gone on without it. */
  silences: number;
  jitterMs: { p50: number; p99: number; max: number };
  scheduling: 'fifo' | 'nice' | 'usual';
}

/** Path of the library that is preloaded into programs. */
export const tokenLibraryPath = builtPath('tokens/libgpuwhisk-tokens.so');
export const tokenAddonPath = builtPath('tokens.node');

/** The addon, or undefined where it is not built. */
export function loadTokenAddon(path = tokenAddonPath): TokenAddon | undefined {
  if (!existsSync(path) || !existsSync(tokenLibraryPath)) return undefined;
  return createRequire(import.meta.url)(path) as TokenAddon;
}
