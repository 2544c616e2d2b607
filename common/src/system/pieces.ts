// Work that is done in pieces, between which other work of the thread is done.
import { othersFirst } from './clock.js';
import type { Clock } from './clock.js';

/** Bytes of a piece: a millisecond of work at most. It divides by 3, so that pieces of base64 can be put together. */
export const pieceBytes = 192 * 1024;

/** By clock, the last piece that is to be worked on. */
const lastTurns = new WeakMap<Clock, Promise<void>>();

/**
 * Resolves when the next piece may be worked on: one a turn of the event loop, however much work is done in pieces, since
 * other requests wait for several turns.
 */
export function nextPiece(clock: Clock): Promise<void> {
  const turn = (lastTurns.get(clock) ?? Promise.resolve()).then(() => othersFirst(clock));
  lastTurns.set(clock, turn);
  return turn;
}
