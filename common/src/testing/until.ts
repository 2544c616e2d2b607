/** For tests: waits until `holds`, asked every 10 ms, gives true; rejects with its text after `withinMs`. */
export async function until(holds: () => boolean | Promise<boolean>, withinMs = 20_000): Promise<void> {
  const beganMs = performance.now();
  while (!(await holds())) {
    if (performance.now() - beganMs > withinMs) throw new Error(`Not within ${withinMs} ms: ${holds.toString()}`);
    await new Promise((done) => setTimeout(done, 10));
  }
}
