const withinMs = 20_000;

/** For tests: waits until `condition` holds; rejects if it does not for 20 s. */
export async function until(condition: () => boolean): Promise<void> {
  const beganMs = performance.now();
  while (!condition()) {
    if (performance.now() - beganMs > withinMs) throw new Error(`Not within ${withinMs} ms: ${condition.toString()}`);
    await new Promise((done) => setTimeout(done, 10));
  }
}
