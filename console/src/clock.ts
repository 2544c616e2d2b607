// The controller's clock, as the stream of events tells it: that of the browser may be wrong.

let behindMs: number | undefined;

/** Notes the controller's present time, epoch ms. */
export function noteTime(at: number): void {
  behindMs = at - performance.now();
}

/** The controller's present time, epoch ms; the browser's until the controller has told its own. */
export function now(): number {
  return behindMs === undefined ? Date.now() : behindMs + performance.now();
}
