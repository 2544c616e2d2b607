import { setTimeout as sleep } from 'node:timers/promises';
import { assert } from './stage.js';
import type { Run } from './platform-client.js';
import { errorOf, succeed } from './platform-stage.js';
import type { PlatformStage } from './platform-stage.js';

const loadMs = 60_000;
/** How long neighbours run beside a function that fails, s, and when it is started, ms. */
const [neighbourS, afterMs] = [3, 700];
/** Longest time until a new process is accepted after a fault, ms. */
const newWithinMs = 5000;

/** A function over its memory is ended, and its neighbour is not. */
export async function checkOverMemory(given: PlatformStage): Promise<void> {
  const { stage, platform, kind } = given;
  await stage.check('functions for failures are loaded', loadMs, async () => {
    // Without shares, as newcomers make them: two of them run side by side from their first call.
    await platform.make('neighbour', kind, 'answer', {});
    await platform.make('repeated', kind, 'answer', { idempotent: true });
    await platform.make('over', kind, 'over', { memoryMiB: 1024 });
    for (const name of ['trap', 'trapAgain']) await platform.make(name, kind, 'trap', {});
    await Promise.all(['neighbour', 'repeated'].map((name) => succeed(given, name)));
    return 'loaded';
  });
  let beside: Promise<Run> | undefined;
  await stage.check('a function over its memory is ended', loadMs, async () => {
    beside = platform.run('neighbour', { seconds: neighbourS });
    beside.catch(() => undefined); // The next check reports it.
    await sleep(afterMs);
    const over = await platform.run('over');
    assert(!over.success, 'it ended with success');
    return errorOf(over);
  });
  await stage.check('its neighbour is not', loadMs, async () => {
    assert(beside !== undefined, 'no neighbour ran');
    const run = await beside;
    assert(run.success, `the neighbour failed: ${errorOf(run)}`);
    return 'success';
  });
}

/** Runs `name` for some seconds, and a function that makes a fault beside it. Gives both records. */
async function strike({ platform }: PlatformStage, name: string, trap: string): Promise<{ beside: Run; struck: Run }> {
  const running = platform.run(name, { seconds: neighbourS });
  running.catch(() => undefined); // Awaited below.
  await sleep(afterMs);
  const struck = await platform.run(trap);
  return { struck, beside: await running };
}

/**
 * A fault in a kernel. Under MPS it ends all clients of the server: innocent runs are recorded as such, and repeated where they
 * are idempotent. In time slices it ends its own function only.
 */
export async function checkFaults(given: PlatformStage): Promise<void> {
  const { stage, platform, mps } = given;
  await platform.make('newcomer', 'driver', 'answer', { mpsPercent: 50 });
  let beside: Run | undefined;
  await stage.check('a fault in a kernel ends its function', loadMs, async () => {
    const both = await strike(given, 'neighbour', 'trap');
    ({ beside } = both);
    assert(!both.struck.success, 'it ended with success');
    return errorOf(both.struck);
  });
  await stage.check('new functions start within 5 s of a fault', loadMs, async () => {
    const run = await succeed(given, 'newcomer');
    stage.metric('newAfterFaultMs', run.elapsedMs);
    assert(run.elapsedMs <= newWithinMs, `it took ${run.elapsedMs.toFixed(0)} ms`);
    return `${run.elapsedMs.toFixed(0)} ms`;
  });
  const innocent = mps ? 'an innocent function is recorded as such' : "a fault ends no other function's run";
  await stage.check(innocent, loadMs, () => {
    assert(beside !== undefined, 'no neighbour ran');
    if (!mps) assert(beside.success, errorOf(beside));
    else assert(/another|a function's fault/i.test(errorOf(beside)), `success ${beside.success}, ${errorOf(beside)}`);
    return Promise.resolve(errorOf(beside));
  });
  await stage.check('an innocent idempotent function is repeated', loadMs, async () => {
    await succeed(given, 'repeated'); // Its process has ended with the first fault.
    const { struck, beside: repeated } = await strike(given, 'repeated', 'trapAgain');
    assert(!struck.success, 'the fault did not end its own function');
    assert(repeated.success, errorOf(repeated));
    const longMs = 1000 * neighbourS + afterMs / 2;
    assert(!mps || repeated.elapsedMs > longMs, `it ran once, for ${repeated.elapsedMs.toFixed(0)} ms`);
    return `success after ${repeated.elapsedMs.toFixed(0)} ms`;
  });
}
