// Functions beside a training job on a platform with one simulated GPU, with and without the guard of the training.
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { randomFraction, seededRandom, type Random } from '@gpuwhisk/common/system/random';
import type { BenchContext, Measurement } from '@gpuwhisk/bench/bench';
import { burstTimes, longestBelow, ratesBySecond } from '@gpuwhisk/bench/live/bursts';
import { hostMemoryMiB, modelCode } from '@gpuwhisk/bench/live/functions';
import { startLivePlatform, type LivePlatform } from '@gpuwhisk/bench/live/platform';
import { gpuOf, runMsOf, type Answered, type Player, type StartKind } from '@gpuwhisk/bench/live/player';
import { startTraining, type Training } from '@gpuwhisk/bench/live/training';
import { aloneOnDevice, readStandInModel, soloMs, type StandInModel } from '@gpuwhisk/bench/stand-in-model';
import { meanOf, median, percentile, randomItem } from '@gpuwhisk/bench/statistics';

const type = 'rtx3090';
/** The models of the thesis (table 2.1). */
const models = ['vgg16', 'resnet50', 'mobilenet', 'deepvit', 'bert', 'roberta', 'deepfm', 'segnet'];
/** Smallest, middle (by its logarithm) and largest batch of section 5.1.2. */
const batches = [1, 8, 32];
/** An SLO is so many times the 99th percentile of the latency alone (section 5.1.2). */
const sloFactors = { least: 1, greatest: 4 };
/** Section 5.4.1.1: about 390 requests in 20 s, of which the fullest second has 35 (figure 5.4). */
const bursts = { requests: 390, intervals: 20, stages: 8 };
const fullest = 35;
/** Section 5.4.1.4: the training alone uses the GPU for 20 to 30 % of the time. */
const training = { model: 'mobilenet', batch: 32, busy: 0.25, bound: 0.1 };
/** Time and kernels of a training step, in inferences (`train_step` of runtimes/cuda). */
const stepFactor = 3;
const contextMiB = 512;

/** Warm runs alone of a function: so many, or fewer once they took `mostMs`, but at least `least`. */
const alone = { most: 20, mostMs: 1500, least: 3 };
/** Warm runs from which the platform learns a function's time. */
const taught = 2;
const settleMs = 3000;
const afterMs = 1000;
/** Part of the functions that are measured beside the training beforehand (section 5.2.1.1), and for how long each. */
const sampled = { part: 0.2, forMs: 12_000 };
/** The folder of the platform that has measured; the one that plays the trace starts from a copy of it. */
const measuredName = 'smore-measured';

/**
 * Runs of a function that fills the GPU and declares that it fills a twentieth, so that it is let in beside the training: as
 * many at once, each of so many batches.
 */
const misled = { model: 'vgg16', batch: 32, declared: 0.05, runs: 4, units: 25 };

/** A function: a model that computes one batch for a request. */
interface ModelFunction {
  name: string;
  model: string;
  batch: number;
  memoryMiB: number;
  /** Part of the SMs that it fills. */
  smUtil: number;
  /** By the model of the stand-in, ms. */
  unitMs: number;
}

/** Times of a function's warm runs alone. */
interface Alone {
  /** The median of its own time, ms. */
  runMs: number;
  /** Median and 99th percentile from request to answer, ms. */
  latencyMs: number;
  p99Ms: number;
}

/** A request of the trace. */
interface Sent {
  of: ModelFunction;
  status: number;
  latencyMs: number;
  /** Of one that was answered 200. */
  runMs?: number;
  start?: StartKind;
}

/** Requests that were sent beside the training. */
interface Played {
  sent: Sent[];
  /** Rate of the training before them, and in each second of them, steps per second. */
  aloneRate: number;
  rates: number[];
}

function functionsOf(model: StandInModel): ModelFunction[] {
  const all = models.flatMap((name) => batches.map((batch) => functionOf(model, name, batch)));
  // The large ones first: later ones may take their memory.
  return all.sort((one, other) => other.memoryMiB - one.memoryMiB);
}

function functionOf(model: StandInModel, name: string, batch: number): ModelFunction {
  const row = rowOf(model, name);
  const { stretch, smUtil } = aloneOnDevice(model, type, name, batch);
  const memoryMiB = Math.ceil(row.weightsMiB + batch * row.itemMiB + contextMiB);
  return { name: `${name}-${batch}`, model: name, batch, memoryMiB, smUtil, unitMs: soloMs(row, batch) * stretch };
}

function rowOf(model: StandInModel, name: string): StandInModel['workloads'][number] {
  const row = model.workloads.find((one) => one.name === name);
  if (row === undefined) throw new RangeError(`the stand-in has no ${name}`);
  return row;
}

/** Further settings of a function's action. */
interface Deployed {
  sloMs?: number;
  mpsPercent?: number;
  /** Batches of a run, by default one. */
  units?: number;
  /** Default: a run may be repeated. */
  idempotent?: boolean;
}

async function deploy({ api }: LivePlatform, of: ModelFunction, deployed: Deployed = {}): Promise<void> {
  const { name, model, batch, memoryMiB, smUtil } = of;
  const { units = 1, idempotent = true, ...limits } = deployed;
  const gpu = { memoryMiB, class: 'inference', features: { smUtil }, ...limits };
  await api.json('PUT', `/api/v1/namespaces/_/actions/${name}?overwrite=true`, {
    exec: { kind: 'python:default', code: modelCode },
    limits: { memory: hostMemoryMiB },
    parameters: Object.entries({ model, batch, training: false, units }).map(([key, value]) => ({ key, value })),
    annotations: [
      { key: 'gpu', value: gpu },
      { key: 'idempotent', value: idempotent },
    ],
  });
}

async function send(player: Player, of: ModelFunction): Promise<Sent> {
  const sentMs = performance.now();
  const { status, text } = await player.call(of.name, {});
  const latencyMs = performance.now() - sentMs;
  if (status !== 200) return { of, status, latencyMs };
  const record = JSON.parse(text) as Answered;
  return { of, status, latencyMs, runMs: runMsOf(record), start: gpuOf(record).start };
}

/** Runs a function until `isEnough` of its warm runs. Throws if its runs do not become warm. */
async function runAlone(player: Player, of: ModelFunction, isEnough: (warm: Sent[]) => boolean): Promise<Sent[]> {
  const warm: Sent[] = [];
  for (let others = 0; !isEnough(warm);) {
    const run = await send(player, of);
    if (run.start === 'warm') warm.push(run);
    else if ((others += 1) > alone.most) throw new Error(`${of.name} did not run warm alone (status ${run.status})`);
  }
  return warm;
}

/**
 * Measures each function alone, and then a sample of them beside the training, whose bound is lifted meanwhile (section 4.3.1):
 * each is called again and again. The platform learns from both.
 */
async function measure(
  context: BenchContext,
  { model, functions, random }: { model: StandInModel; functions: readonly ModelFunction[]; random: Random },
): Promise<Map<string, Alone>> {
  const { say, temporaryDir } = context;
  say(`smore: ${functions.length} functions are measured alone`);
  const environment = { GPUWHISK_GPU__POLICY: 'smore' };
  const platform = await startLivePlatform(context, measuredName, `sim:${type}x1`, environment);
  const { player } = platform;
  const times = new Map<string, Alone>();
  for (const of of functions) {
    await deploy(platform, of);
    const warm = await runAlone(player, of, (runs) => {
      const tookMs = runs.reduce((sum, { latencyMs }) => sum + latencyMs, 0);
      return runs.length >= alone.most || (runs.length >= alone.least && tookMs >= alone.mostMs);
    });
    const latencies = warm.map(({ latencyMs }) => latencyMs);
    times.set(of.name, {
      runMs: median(warm.map(({ runMs = NaN }) => runMs)),
      latencyMs: median(latencies),
      p99Ms: percentile(latencies, 99),
    });
  }
  const left = [...functions];
  const sample = Array.from({ length: Math.round(sampled.part * functions.length) }, () => {
    const one = randomItem(left, random);
    left.splice(left.indexOf(one), 1);
    return one;
  });
  say(`smore: ${sample.map(({ name }) => name).join(', ')} are measured beside the training`);
  const job = await startTrainingFor(context, platform, model, join(temporaryDir, `${measuredName}.log`));
  await job.setBound(1);
  for (const of of sample) {
    for (const untilMs = performance.now() + sampled.forMs; performance.now() < untilMs;) await send(player, of);
  }
  await job.stop();
  await platform.stop();
  return times;
}

/** A request of the trace, before it is sent. */
interface Planned {
  of: ModelFunction;
  atMs: number;
}

/**
 * The trace: bursts of requests, each for any of the functions. In the thesis the fullest second alone is too much for the GPU
 * (section 5.4.1.3). A second of the thesis therefore takes as long here as the GPU needs for the requests of that one. Unchanged
 * it would be an overload, as large batches take longer on the stand-in than on the GPU of the thesis.
 */
function traceOf(functions: readonly ModelFunction[], random: Random): Planned[] {
  const workMs = meanOf(functions.map(({ unitMs, smUtil }) => unitMs * smUtil));
  const times = burstTimes({ ...bursts, spanMs: bursts.intervals * fullest * workMs }, random);
  return times.map((atMs) => ({ atMs, of: randomItem(functions, random) }));
}

async function play(player: Player, trace: readonly Planned[]): Promise<Sent[]> {
  const startedMs = performance.now();
  return Promise.all(
    trace.map(async ({ of, atMs }) => {
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, atMs - (performance.now() - startedMs))));
      return send(player, of);
    }),
  );
}

/** The platform that plays the trace. */
interface Beside {
  model: StandInModel;
  functions: readonly ModelFunction[];
  trace: readonly Planned[];
  slosMs: ReadonlyMap<string, number>;
}

/** Plays the trace beside the training, and then the misled function, on a platform that starts with what was measured. */
async function playGuarded(
  context: BenchContext,
  { model, functions, trace, slosMs }: Beside,
): Promise<{ trace: Played; misled: Played }> {
  const { temporaryDir, say } = context;
  const folder = 'smore-guarded';
  await cp(join(temporaryDir, measuredName), join(temporaryDir, folder), { recursive: true });
  const platform = await startLivePlatform(context, folder, `sim:${type}x1`, {
    GPUWHISK_GPU__POLICY: 'smore',
    GPUWHISK_GPU__ADMISSION: 'refuse',
  });
  for (const of of functions) {
    const sloMs = slosMs.get(of.name);
    await deploy(platform, of, { ...(sloMs !== undefined && { sloMs }) });
    await runAlone(platform.player, of, (runs) => runs.length >= taught);
  }
  const spanS = Math.round((trace.at(-1)?.atMs ?? 0) / 1000);
  say(`smore: ${trace.length} requests are sent in ${spanS} s beside a training`);
  const job = await startTrainingFor(context, platform, model, join(temporaryDir, `${folder}.log`));
  const played = await besideTraining(job, () => play(platform.player, trace));
  say('smore: a function that declares too little runs beside the training');
  const after = await besideTraining(job, () => playMisled(platform, model));
  await job.stop();
  await platform.stop();
  return { trace: played, misled: after };
}

/** The misled function beside the training without the guard, on a platform of its own. */
async function playUnguarded(context: BenchContext, model: StandInModel): Promise<Played> {
  const policy = JSON.stringify({ base: 'smore', preempt: 'none' });
  const folder = 'smore-unguarded';
  const environment = { GPUWHISK_GPU__POLICY: policy };
  const platform = await startLivePlatform(context, folder, `sim:${type}x1`, environment);
  context.say('smore: the same without the guard');
  const job = await startTrainingFor(context, platform, model, join(context.temporaryDir, `${folder}.log`));
  const played = await besideTraining(job, () => playMisled(platform, model));
  await job.stop();
  await platform.stop();
  return played;
}

async function playMisled(platform: LivePlatform, model: StandInModel): Promise<Sent[]> {
  const { declared, runs, units, ...own } = misled;
  const of = { ...functionOf(model, own.model, own.batch), name: 'misled', smUtil: declared };
  // Its share does not follow from what it declares.
  await deploy(platform, of, { units, mpsPercent: 100, idempotent: false });
  return Promise.all(Array.from({ length: runs }, () => send(platform.player, of)));
}

async function besideTraining(job: Training, calls: () => Promise<Sent[]>): Promise<Played> {
  await pause(settleMs);
  const aloneRate = median((await ratesUntilNow(job)).slice(-alone.most));
  const fromMs = Date.now();
  const sent = await calls();
  // It may be slow for some time after the last answer.
  await pause(afterMs);
  const toMs = Date.now();
  await pause(settleMs);
  return { sent, aloneRate, rates: ratesBySecond(await job.stepEnds(), fromMs, toMs) };
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

function startTrainingFor(
  { cleanup }: BenchContext,
  platform: LivePlatform,
  model: StandInModel,
  log: string,
): Promise<Training> {
  const { batch, busy, bound, model: name } = training;
  const { stretch, smUtil } = aloneOnDevice(model, type, name, batch);
  const stepMs = soloMs(rowOf(model, name), batch) * stretch * stepFactor;
  const hostMs = stepMs * (1 / busy - 1);
  return startTraining(platform, cleanup, { model: name, batch, hostMs, bound, smUtil: smUtil * busy, log });
}

/** Rates of the whole seconds since the first end of a step. */
async function ratesUntilNow(job: Training): Promise<number[]> {
  const ends = await job.stepEnds();
  const [first = NaN] = ends;
  return ratesBySecond(ends, first, (ends.at(-1) ?? NaN) - 1);
}

const partOf = <Item>(items: readonly Item[], is: (item: Item) => boolean): number =>
  items.length === 0 ? 0 : items.filter(is).length / items.length;

/** Figures of the training beside requests, with names that begin with `prefix`. */
function trainingFigures(prefix: string, { aloneRate, rates }: Played): Measurement[] {
  const least = aloneRate * (1 - training.bound);
  return [
    { name: `${prefix}trainingLoss`, value: 1 - meanOf(rates) / aloneRate },
    { name: `${prefix}beyondS`, value: longestBelow(rates, least) },
    { name: `${prefix}beyondPart`, value: partOf(rates, (rate) => rate < least) },
  ];
}

/** Figures of the requests of the trace. */
function requestFigures(
  { sent }: Played,
  slosMs: ReadonlyMap<string, number>,
  times: ReadonlyMap<string, Alone>,
): Measurement[] {
  const admitted = sent.filter(({ status }) => status === 200);
  const runLoss = ({ of, runMs = NaN }: Sent): number => runMs / (times.get(of.name)?.runMs ?? NaN) - 1;
  const latencyLoss = ({ of, latencyMs }: Sent): number => latencyMs / (times.get(of.name)?.latencyMs ?? NaN) - 1;
  const figures: Record<string, number> = {
    admitted: partOf(sent, ({ status }) => status === 200),
    refused: partOf(sent, ({ status }) => status === 429),
    failed: partOf(sent, ({ status }) => status !== 200 && status !== 429),
    late: partOf(sent, ({ of, status, latencyMs }) => status === 200 && latencyMs > (slosMs.get(of.name) ?? NaN)),
    under10: partOf(admitted, (one) => runLoss(one) < 0.1),
    under100: partOf(admitted, (one) => runLoss(one) < 1),
    latencyUnder10: partOf(admitted, (one) => latencyLoss(one) < 0.1),
    notWarm: partOf(admitted, ({ start }) => start !== 'warm'),
    ...Object.fromEntries(
      models.map((model) => {
        const own = sent.filter(({ of }) => of.model === model);
        return [`admitted.${model}`, partOf(own, ({ status }) => status === 200)];
      }),
    ),
  };
  return Object.entries(figures).map(([name, value]) => ({ name: `live.${name}`, value }));
}

/**
 * Part `live`: 390 requests beside a training of MobileNet on one simulated RTX 3090 under policy `smore` (thesis, section
 * 5.4.1), and a function that declares too little, with and without the guard. A proof of the control plane: the GPU's times
 * are those of the stand-in.
 */
export async function smoreLive(context: BenchContext): Promise<Measurement[]> {
  const random = seededRandom(context.options.seed);
  const model = readStandInModel();
  const functions = functionsOf(model);
  const trace = traceOf(functions, random);
  const times = await measure(context, { model, functions, random });
  const slosMs = new Map(
    [...times].map(([name, { p99Ms }]) => {
      const factor = sloFactors.least + randomFraction(random) * (sloFactors.greatest - sloFactors.least);
      return [name, Math.round(p99Ms * factor)];
    }),
  );
  const guarded = await playGuarded(context, { model, functions, trace, slosMs });
  const unguarded = await playUnguarded(context, model);
  return [
    ...requestFigures(guarded.trace, slosMs, times),
    ...trainingFigures('live.', guarded.trace),
    ...trainingFigures('live.misled.', guarded.misled),
    ...trainingFigures('live.misled.unguarded.', unguarded),
  ];
}
