import { setTimeout as sleep } from 'node:timers/promises';
import { median } from '../../statistics.js';
import { hasTorch } from './python.js';
import { referenceOf, referenceProcesses } from './reference.js';
import { assert } from './stage.js';
import type { Stage } from './stage.js';
import { checkFaults, checkOverMemory } from './platform-faults.js';
import { startKitPlatform } from './platform-client.js';
import type { Run } from './platform-client.js';
import { succeed } from './platform-stage.js';
import type { PlatformStage } from './platform-stage.js';

const startMs = 60_000; // A first call loads PyTorch and makes a context.
const [toleranceMiB, tolerancePart] = [64, 0.05];
const shareTolerance = 0.05;
const shares = [30, 50, 70] as const;
const memoryMiB = 4096;

/** The platform, with its functions on the device: answers, shares, isolation of failures, times of first requests. */
export async function platform(stage: Stage): Promise<void> {
  const kind = !stage.simulated && (await hasTorch(stage)) ? 'torch' : 'driver';
  const started = await startKitPlatform({ ...stage, kind });
  const [device] = await started.devices();
  const mps = device?.mode === 'mps';
  stage.note(`${device?.name}, mode ${device?.mode}, guest programs: ${kind}`);
  const given: PlatformStage = { stage, platform: started, kind, mps };
  await checkAnswer(given);
  await checkMemory(given);
  await checkFirstRequests(given);
  await checkShares(given);
  await checkOverMemory(given);
  await checkFaults(given);
  await measureRate(given);
  await stage.check('the platform stops in order', 20_000, async () => {
    await started.server.stop();
    return 'stopped';
  });
}

async function checkAnswer(given: PlatformStage): Promise<void> {
  const { stage, platform, kind } = given;
  const wanted = stage.simulated ? 'driver' : 'torch';
  let cold: Run | undefined;
  await stage.check('a function answers from the device', startMs, async () => {
    await platform.make('answer', kind, 'answer', { mpsPercent: 70 });
    cold = await succeed(given, 'answer');
    stage.metric('firstRequestMs.cold', cold.elapsedMs);
    const warm: number[] = [];
    for (let run = 0; run < 20; run++) warm.push((await succeed(given, 'answer')).elapsedMs);
    stage.metric('firstRequestMs.warm', median(warm));
    assert(kind === wanted, `it ran on ${kind}, without PyTorch`);
    return `by ${String(cold.result.by)}`;
  });
  await stage.check('the record names device, share and times', 5000, async () => {
    assert(cold !== undefined, 'no function has run');
    const [device] = await platform.devices();
    const gpu = cold.annotations.gpu as Record<string, unknown> | undefined;
    const problems = [
      gpu?.device === device?.uuid ? '' : `device ${String(gpu?.device)}`,
      gpu?.share === 0.7 ? '' : `share ${String(gpu?.share)}`,
      ...['queueMs', 'actualMs'].map((name) => (typeof gpu?.[name] === 'number' ? '' : `no ${name}`)),
      ['cold', 'prewarmed', 'injected'].includes(String(gpu?.start)) ? '' : `start ${String(gpu?.start)}`,
      cold.annotations.coldStart === undefined ? 'no coldStart' : '',
    ].filter((one) => one !== '');
    assert(problems.length === 0, `${problems.join(', ')} in ${JSON.stringify(cold.annotations)}`);
    return JSON.stringify(gpu);
  });
}

async function checkMemory({ stage, platform }: PlatformStage): Promise<void> {
  await stage.check('wsk gpu top shows the memory that the driver shows', 10_000, async () => {
    await sleep(1500); // The agent looks once a second.
    const top = await platform.wsk('gpu', 'top', '--once');
    stage.note(top.trim());
    const given = { simulated: stage.simulated, env: platform.env };
    const reference = await referenceOf(given);
    const used = Number(/healthy +\d+ +\S+ +(\d+)/.exec(top)?.[1]);
    const there = reference.usedMemoryMiB ?? Number.NaN;
    const isClose = Math.abs(used - there) <= toleranceMiB + tolerancePart * there;
    assert(isClose, `wsk gpu top shows ${used} MiB, the driver ${there}`);
    const processes = [...(await referenceProcesses(given)).values()];
    const held = (await platform.devices()).flatMap(({ functions }) => functions.map((one) => one.heldMiB ?? 0));
    const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
    const isHeld = Math.abs(sum(held) - sum(processes)) <= toleranceMiB + tolerancePart * sum(processes);
    assert(isHeld, `functions hold ${held.join(' + ')} MiB, processes ${processes.map(Math.round).join(' + ')}`);
    return `${used} MiB; functions hold ${held.join(' + ')} MiB`;
  });
}

const perS = (run: Run): number => Number(run.result.perS);

async function checkShares(given: PlatformStage): Promise<void> {
  const { stage, platform, kind, mps } = given;
  const rates = new Map<number, number>();
  await stage.check('functions with shares are loaded', startMs, async () => {
    const names = [100, ...(mps ? shares : [50])].map((percent) => ({ name: `fill${percent}`, mpsPercent: percent }));
    const all = [...names, { name: 'fillB', mpsPercent: 50 }];
    for (const { name, mpsPercent } of all) await platform.make(name, kind, 'saturate', { memoryMiB, mpsPercent });
    // Together, since each loads a framework.
    await Promise.all(all.map(({ name }) => succeed(given, name)));
    return `${all.length} functions`;
  });
  if (mps) {
    await stage.check('a share is that part of the throughput', 30_000, async () => {
      for (const percent of [100, ...shares]) {
        rates.set(percent, perS(await succeed(given, `fill${percent}`, { seconds: 1.5 })));
      }
      const whole = rates.get(100) ?? Number.NaN;
      const ratios = shares.map((percent) => ({ percent, ratio: (rates.get(percent) ?? Number.NaN) / whole }));
      for (const { percent, ratio } of ratios) stage.metric(`shareError.${percent}`, Math.abs(ratio - percent / 100));
      const said = ratios.map(({ percent, ratio }) => `${percent} %: ${ratio.toFixed(3)}`).join(', ');
      assert(
        ratios.every(({ percent, ratio }) => Math.abs(ratio - percent / 100) <= shareTolerance),
        said,
      );
      return said;
    });
  } else stage.note('No MPS: shares are not enforced, and functions take turns.');
  await stage.check('two functions at 50 % run at once', 30_000, async () => {
    const [a, b] = await Promise.all(['fill50', 'fillB'].map((name) => succeed(given, name, { seconds: 2 })));
    assert(a !== undefined && b !== undefined, 'no runs');
    const overlap = (Math.min(a.end, b.end) - Math.max(a.start, b.start)) / Math.min(a.end - a.start, b.end - b.start);
    stage.metric('overlap.two50', Math.max(0, overlap));
    const alone = rates.get(50);
    if (alone !== undefined) stage.metric('throughput.two50', (perS(a) + perS(b)) / (2 * alone));
    const said = `runs overlap for ${(100 * Math.max(0, overlap)).toFixed(0)} % of the shorter one`;
    assert(!mps || overlap > 0.5, said);
    return said;
  });
}

/** Resolves once a process without a function waits with this share. Rejects after `withinMs`. */
async function untilPrewarmed({ platform }: PlatformStage, share: number, withinMs: number): Promise<void> {
  const untilMs = performance.now() + withinMs;
  for (;;) {
    const functions = (await platform.devices()).flatMap((device) => device.functions);
    if (functions.some((one) => one.action === undefined && one.share === share)) return;
    assert(performance.now() < untilMs, `no pre-warmer with share ${share} within ${withinMs} ms`);
    await sleep(100);
  }
}

async function checkFirstRequests(given: PlatformStage): Promise<void> {
  const { stage, platform, kind } = given;
  const imports = kind === 'torch' ? ['torch'] : ['json'];
  const settings = { mpsPercent: 20, imports };
  await stage.check('a pre-warmed process takes a function', startMs, async () => {
    await platform.make('first', kind, 'answer', settings);
    await succeed(given, 'first');
    await untilPrewarmed(given, 0.2, 30_000);
    await platform.make('second', kind, 'answer', settings);
    const prewarmed = await succeed(given, 'second');
    stage.metric('firstRequestMs.prewarmed', prewarmed.elapsedMs);
    const gpu = prewarmed.annotations.gpu as Record<string, unknown>;
    assert(gpu.start === 'injected' || gpu.start === 'prewarmed', `it started ${String(gpu.start)}`);
    await untilPrewarmed(given, 0.2, 30_000);
    // Injection alone: the function makes no model of its own.
    await platform.makeFrom('third', 'def main(args):\n    return {"answer": 42}\n', settings);
    const injected = await succeed(given, 'third');
    stage.metric('firstRequestMs.injected', injected.elapsedMs);
    const { injectMs } = injected.annotations.gpu as Record<string, unknown>;
    if (typeof injectMs === 'number') stage.metric('injectMs', injectMs);
    return `second: ${JSON.stringify(gpu)}; third: injectMs ${String(injectMs)}`;
  });
  await stage.check('a function whose model was loaded ahead answers at once', startMs, async () => {
    await platform.make('ahead', kind, 'answer', { mpsPercent: 30 });
    await platform.load('ahead');
    const ready = await succeed(given, 'ahead');
    stage.metric('firstRequestMs.ready', ready.elapsedMs);
    const { coldStart } = ready.annotations;
    assert(coldStart === undefined, `its code was loaded in this run: ${JSON.stringify(coldStart)}`);
    return `${ready.elapsedMs.toFixed(0)} ms`;
  });
}

const [callers, rateS] = [4, 4];

async function measureRate(given: PlatformStage): Promise<void> {
  const { stage } = given;
  await stage.check('requests of a small model are served', startMs, async () => {
    await succeed(given, 'answer'); // Its process may have ended with others' faults.
    const beganMs = performance.now();
    const untilMs = beganMs + rateS * 1000;
    let served = 0;
    const call = async (): Promise<void> => {
      while (performance.now() < untilMs) {
        await succeed(given, 'answer');
        served++;
      }
    };
    await Promise.all(Array.from({ length: callers }, call));
    const rate = served / ((performance.now() - beganMs) / 1000);
    stage.metric('requestsPerS', rate);
    return `${rate.toFixed(0)} a second`;
  });
}
