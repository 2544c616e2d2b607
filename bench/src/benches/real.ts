import { setTimeout as sleep } from 'node:timers/promises';
import { join } from 'node:path';
import { medianOf, type Bench, type BenchContext, type Measurement } from '../bench.js';
import { functionsOf, sharedCode, type Functions } from '../real/functions.js';
import { moduleSets, type ModuleSet } from '../real/module-sets.js';
import { memoryOfTen, type MemoryOfTen } from '../real/process-memory.js';
import { percentile } from '../statistics.js';
import { azureDay } from './real-day.js';

/** Pause between two functions of a set: what the platform readies meanwhile counts for it, ms. */
const pauseMs = 2000;
const atOnce = 8;
/** The part that plays a day in virtual time. */
const dayPart = 'azureDay';

/** Starts of functions that import real packages, with nothing declared. */
export const real: Bench = {
  summary: `first calls of functions that import real packages, and a day of them in virtual time (${dayPart}, needs BENCH_DATA)`,
  parts: [...Object.keys(moduleSets), dayPart],
  async run(context) {
    const { parts } = context.options;
    const wants = (part: string): boolean => parts.length === 0 || parts.includes(part);
    const measurements: Measurement[] = [];
    for (const [name, set] of Object.entries(moduleSets))
      if (wants(name)) measurements.push(...(await measureSet(context, name, set)));
    if (wants(dayPart)) measurements.push(...(await azureDay(context, measurements)));
    return measurements;
  },
};

/** Settings with which instances leave soon: snapshots of further functions need memory to be made in. */
const leaving = { GPUWHISK_POOL__IDLE_CONTAINER_MS: '2000' };
/** Settings with which every function imports its modules itself. */
const importing = { GPUWHISK_WARM__LEARN: 'false', GPUWHISK_WARM__TEMPLATES: 'false' };
/** Java's machine that is made ahead takes a moment: its runtime is compiled first. */
const preparing = { GPUWHISK_PREPARE_RUNTIMES: 'true' };
/** Time for which the pool leaves the machine to the function that has taken a process, ms (invoker/src/pool/stem-cells.ts). */
const refillAfterMs = 100;
/** Wait for a process that is ready again, ms. */
const readyTimeoutMs = 10_000;

async function measureSet(context: BenchContext, name: string, set: ModuleSet): Promise<Measurement[]> {
  const { temporaryDir, options, say } = context;
  const shared = await sharedCode(set, join(temporaryDir, `${name}-code`));
  const samples = Math.min(options.samples, 10);
  const always = set.kind.startsWith('java:') ? preparing : {};
  const own = await functionsOf(context, name, set, shared, { ...always, ...(set.snapshot && leaving) });
  const figures = await measureStarts(name, own, samples, set.snapshot === true);
  const learned = set.learns ? await memoryOfTen(own, true) : undefined;
  const templateMiB = await own.templateMiB();
  await own.stop();
  const plain = await functionsOf(context, `${name}-importing`, set, shared, { ...always, ...importing });
  await plain.start(await plain.make());
  const imported: number[] = [];
  for (let sample = 0; sample < samples; sample++) {
    await sleep(pauseMs);
    imported.push((await plain.start(await plain.make())).startMs);
  }
  const memory =
    learned === undefined ? [] : memoryFigures(name, learned, await memoryOfTen(plain, false), templateMiB);
  await plain.stop();
  const importedMs = medianOf(`realImportedMs.${name}`, imported);
  const other = figures.find((figure) => figure.name === `realColdMs.${name}.other`);
  say(`  ${name} done`);
  return [
    ...figures,
    importedMs,
    ...(other === undefined ? [] : [{ name: `realSpeedup.${name}`, value: importedMs.value / other.value }]),
    ...memory,
  ];
}

/** Memory of processes that were made ahead, and of those that imported the modules themselves. */
function memoryFigures(name: string, learned: MemoryOfTen, plain: MemoryOfTen, templateMiB: number): Measurement[] {
  const { ownMiB, sharedMiB } = learned;
  return [
    { name: `realTemplateMiB.${name}`, value: templateMiB },
    { name: `realOwnMiB.learned.${name}`, value: ownMiB },
    { name: `realSharedMiB.learned.${name}`, value: sharedMiB },
    { name: `realOwnMiB.plain.${name}`, value: plain.ownMiB },
    { name: `realSharedMiB.plain.${name}`, value: plain.sharedMiB },
    { name: `realPssOfTen.${name}`, value: (10 * ownMiB + sharedMiB) / (ownMiB + sharedMiB) },
  ];
}

async function measureStarts(
  name: string,
  functions: Functions,
  samples: number,
  copies: boolean,
): Promise<Measurement[]> {
  const { make, start, ready, hasSnapshot } = functions;
  // The first start of all installs packages; it is told apart.
  const installed = await start(await make());
  const again: number[] = [];
  const others: number[] = [];
  const seconds: number[] = [];
  const reads: number[] = [];
  for (let sample = 0; sample < samples; sample++) {
    await sleep(pauseMs);
    const action = await make();
    const before = await ready();
    others.push((await start(action)).startMs);
    again.push(...(await readyAgain(ready, before)));
    if (copies) await hasSnapshot(action);
    // The first instance holds a call, so that the second call needs an instance of its own.
    const held = start(action, { holdS: 1 });
    await sleep(100);
    const second = await start(action, { reads: 1 });
    seconds.push(second.startMs);
    if (typeof second.result['readMs'] === 'number') reads.push(second.result['readMs']);
    await held;
  }
  await sleep(pauseMs);
  const actions = await Promise.all(Array.from({ length: atOnce }, make));
  const together = (await Promise.all(actions.map((action) => start(action)))).map(({ startMs }) => startMs);
  return [
    ...(copies ? await measureInstances(name, functions) : []),
    ...(reads.length > 0 ? [medianOf(`realFirstReadMs.${name}`, reads)] : []),
    { name: `realInstallMs.${name}`, value: installed.startMs },
    medianOf(`realColdMs.${name}.other`, others),
    { name: `realColdP95Ms.${name}.other`, value: percentile(others, 95) },
    medianOf(`realColdMs.${name}.second`, seconds),
    { name: `realColdP95Ms.${name}.second`, value: percentile(seconds, 95) },
    medianOf(`realColdMs.${name}.eight`, together),
    { name: `realColdP95Ms.${name}.eight`, value: percentile(together, 95) },
    ...(again.length === 0 ? [] : [medianOf(`readyAgainMs.${name}`, again)]),
  ];
}

/** Starts of eight further instances of one function, for calls that come at once. */
async function measureInstances(name: string, { make, start, hasSnapshot }: Functions): Promise<Measurement[]> {
  const action = await make();
  await start(action);
  await hasSnapshot(action);
  const all = await Promise.all(Array.from({ length: atOnce + 1 }, () => start(action, { holdS: 2 })));
  const starts = all.map(({ startMs }) => startMs).sort((one, other) => one - other);
  return [medianOf(`realColdMs.${name}.instances`, starts.slice(1))];
}

/** How long it takes until as many containers with modules are ready as before; nothing if there was none, or one is not made. */
async function readyAgain(ready: Functions['ready'], before: number): Promise<number[]> {
  const beganMs = performance.now();
  while (before > 0 && performance.now() < beganMs + readyTimeoutMs) {
    const isReady = (await ready()) >= before;
    const tookMs = performance.now() - beganMs - refillAfterMs;
    // Earlier, none was taken.
    if (isReady) return tookMs > 0 ? [tookMs] : [];
  }
  return [];
}
