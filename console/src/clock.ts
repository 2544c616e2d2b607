// The controller's clock, as the stream of events tells it: that of the browser may be wrong.
import { signal } from '@preact/signals';

const everyMs = 5000;
let behindMs: number | undefined;
/** Draws what shows a time again, though nothing else has changed. */
const tick = signal(0);
setInterval(() => (tick.value += 1), everyMs);

/** Notes the controller's present time, epoch ms. */
export function noteTime(at: number): void {
  behindMs = at - performance.now();
}

/** The controller's present time, epoch ms; the browser's until the controller has told its own. */
export function now(): number {
  void tick.value;
  return behindMs === undefined ? Date.now() : behindMs + performance.now();
}
