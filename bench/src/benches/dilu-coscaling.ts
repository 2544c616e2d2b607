import { seededRandom } from '@gpuwhisk/common/system/random';
import { diluScale, diluScaleDefaults } from '@gpuwhisk/gpu/scale/dilu';
import { inflessScale, inflessDefaults } from '@gpuwhisk/gpu/scale/infless';
import { reactive } from '@gpuwhisk/gpu/scale/reactive';
import type { ServedRates } from '@gpuwhisk/gpu/view/view';
import type { BenchContext, Measurement } from '../bench.js';
import { serve, type Deployment, type Served } from '../replay/dilu/co-scaling.js';
import { gammaLoad, poissonLoad, readDiluTrace, sporadicRates, type Load } from '../replay/dilu/loads.js';
import { ratePerS, readServedModels, type ServedModel } from '../replay/dilu/served-models.js';
import { meanOf, pairedInterval } from '../statistics.js';

const models = ['resnet152', 'roberta_large'];
/** A trace plays one value a second, times one of these (Dilu's own multipliers). */
const multipliers = [5, 25];
/** Coefficients of variation of gamma arrivals, and their mean and length. */
const variations = [2, 4, 6];
const gammaArrivals = { perS: 6, lengthS: 600 };

/** INFless's minutes while a trace plays ten in a second, and the recent ones of Dilu's INFless+. */
const asPlayed = { minuteS: 1, shortMinutes: 200 };

/** A start until it serves, ms: loads of models of 7 to 8 thousand million parameters took 4.4 and 5.1 s (ServerlessLLM). */
export const coldMs = 5000;
/** Other times of a start, to see what depends on it. */
const otherColdMs = [2000, 10_000];

/** The ways of scaling that are compared, for a function as it was profiled. */
export const deployments: Readonly<Record<string, (model: ServedModel) => Deployment>> = {
  dilu: (model) => verticalDilu(model, {}),
  // The paper's rule alone.
  diluLiteral: (model) => verticalDilu(model, { surgeSamples: diluScaleDefaults.outSamples }),
  // No vertical scaling: an instance never has more than its request.
  diluNoVertical: (model) => ({ ...fixed(model, model.request), scale: diluScale(diluScaleDefaults) }),
  infless: (model) => ({ ...fixed(model, model.request), scale: inflessScale({ ...inflessDefaults, ...asPlayed }) }),
  fastGshare: (model) => ({
    ...fixed(model, model.limit),
    scale: reactive({ windowS: 1, busy: 1, idleS: 0, least: 1 }),
  }),
};
const baselines = ['infless', 'fastGshare'];

function ratesOf({ surface, batch }: ServedModel, request: number, limit: number): ServedRates {
  return { request: ratePerS(surface, batch, request), limit: ratePerS(surface, batch, limit) };
}

/** Alone on its device an instance may run at its limit; only its request is kept from others. */
function verticalDilu(model: ServedModel, changes: Partial<typeof diluScaleDefaults>): Deployment {
  const { request, limit } = model;
  const scale = diluScale({ ...diluScaleDefaults, ...changes });
  return { share: limit, reserved: request, served: ratesOf(model, request, limit), scale };
}

function fixed(model: ServedModel, share: number): Omit<Deployment, 'scale'> {
  return { share, reserved: share, served: ratesOf(model, share, share) };
}

/** Loads by name, of a seed. */
type Loads = Readonly<Record<string, (seed: number) => Load>>;

/** The paper's kinds of traces. */
async function readTraces(): Promise<Loads> {
  const loads: Record<string, (seed: number) => Load> = {};
  const traces = { bursty: await readDiluTrace('bursty'), periodic: await readDiluTrace('periodic') };
  for (const times of multipliers) {
    for (const [name, rates] of Object.entries(traces)) {
      loads[`${name}.x${times}`] = (seed) => poissonLoad(rates, times, seededRandom(seed));
    }
    loads[`sporadic.x${times}`] = (seed) => {
      const random = seededRandom(seed);
      return poissonLoad(sporadicRates(random), times, random);
    };
  }
  return loads;
}

function gammaLoads(): Loads {
  const { perS, lengthS } = gammaArrivals;
  const all = multipliers.flatMap((times) => variations.map((cv) => ({ times, cv })));
  return Object.fromEntries(
    all.map(({ times, cv }) => [
      `gamma${cv}.x${times}`,
      (seed: number) => gammaLoad(perS * times, cv, lengthS, seededRandom(seed)),
    ]),
  );
}

/** Results of one way of scaling, by load of a model and seed. */
type Results = ReadonlyMap<string, readonly Served[]>;

const svr = ({ violations, requests }: Served): number => (requests === 0 ? 0 : violations / requests);
const figures = {
  coldStarts: (one: Served) => one.coldStarts,
  svr,
  reservedS: (one: Served) => one.reservedS,
  deviceS: (one: Served) => one.deviceS,
  usedS: (one: Served) => one.usedS,
} as const;
type Figure = keyof typeof figures;

const meanFigure = (results: Results, load: string, figure: Figure): number =>
  meanOf((results.get(load) ?? []).map(figures[figure]));

/** The figure of each seed, on average over all loads. */
function bySeed(results: Results, figure: Figure): number[] {
  const all = [...results.values()];
  const [first = []] = all;
  return first.map((_, seed) => meanOf(all.map((runs) => figures[figure](runs[seed] as Served))));
}

/** By how much Dilu is below a baseline: on the load where that is least, and on average with its interval. */
function against(name: string, ours: Results, theirs: Results, seed: number): Measurement[] {
  const loads = [...ours.keys()];
  const saved = (figure: Figure): number[] =>
    loads.map((load) => meanFigure(theirs, load, figure) - meanFigure(ours, load, figure));
  const shown = [
    ['coldStarts', 'coldStarts'],
    ['svr', 'svr'],
    ['sgtS', 'reservedS'],
    ['sgtDeviceS', 'deviceS'],
  ] as const;
  return shown.flatMap(([title, figure]) => {
    const random = seededRandom(seed);
    const { mean, low, high } = pairedInterval(bySeed(ours, figure), bySeed(theirs, figure), (a, b) => b - a, random);
    return [
      { name: `Least.${title}.${name}`, value: Math.min(...saved(figure)) },
      { name: `Saved.${title}.${name}`, value: mean },
      { name: `Saved.${title}.${name}Low`, value: low },
      { name: `Saved.${title}.${name}High`, value: high },
    ];
  });
}

const named = (prefix: string, found: readonly Measurement[]): Measurement[] =>
  found.map(({ name, value }) => ({ name: `${prefix}${name}`, value }));

/** The figures of each way on each load, and on average over loads. */
function each(results: ReadonlyMap<string, Results>, say: BenchContext['say']): Measurement[] {
  const found: Measurement[] = [];
  for (const [name, byLoad] of results) {
    for (const figure of Object.keys(figures) as Figure[]) {
      found.push({ name: `.${name}.${figure}`, value: meanOf(bySeed(byLoad, figure)) });
      for (const load of byLoad.keys()) {
        found.push({ name: `.${name}.${load}.${figure}`, value: meanFigure(byLoad, load, figure) });
      }
    }
    const of = (figure: Figure): string => meanOf(bySeed(byLoad, figure)).toFixed(figure === 'svr' ? 4 : 1);
    say(`  ${name}: cold starts ${of('coldStarts')}, SVR ${of('svr')}, reserved ${of('reservedS')} s`);
  }
  return found;
}

/**
 * Co-scaling (Dilu, section 5.3): cold starts, requests later than their SLO (`svr`) and time of GPUs of Dilu, INFless+ and
 * FaST-GS+, for two functions, each instance alone on its device. `coscaling`: on traces; `gamma`: on gamma arrivals.
 * `reservedS`: time of instances times the share that is kept for them, Dilu's request and the baselines' fixed share;
 * `deviceS`: times the device; `usedS`: of runs times their share. `Least`, `Saved`: what Dilu saves against a baseline, on the
 * worst load and on average. `cold2`, `cold10`: with starts of 2 and 10 s. `diluNoVertical`: instances stay at their request.
 */
export async function coScaling({ options, say }: BenchContext): Promise<Measurement[]> {
  const served = await readServedModels(models);
  const traces = await readTraces();
  for (const { name, batch, request, limit, sloMs } of served) {
    say(`  ${name}: batch ${batch}, request ${request}, limit ${limit}, SLO ${sloMs.toFixed(1)} ms`);
  }
  const seeds = Array.from({ length: options.samples }, (_, at) => options.seed * 1000 + at);
  const run = (loads: Loads, startMs: number, names: readonly string[]): Map<string, Results> => {
    const results = new Map(names.map((name) => [name, new Map<string, Served[]>()]));
    for (const model of served) {
      for (const [load, make] of Object.entries(loads)) {
        for (const byLoad of results.values()) byLoad.set(`${model.name}.${load}`, []);
        for (const seed of seeds) {
          const drawn = make(seed);
          for (const [name, byLoad] of results) {
            const deployed = (deployments[name] as (typeof deployments)[string])(model);
            byLoad.get(`${model.name}.${load}`)?.push(serve(model, drawn, deployed, startMs));
          }
        }
      }
    }
    return results;
  };
  const compared = (results: ReadonlyMap<string, Results>): Measurement[] =>
    baselines.flatMap((name) =>
      against(name, results.get('dilu') as Results, results.get(name) as Results, options.seed),
    );
  const measurements: Measurement[] = [];
  for (const [group, loads] of [['coscaling', traces] as const, ['gamma', gammaLoads()] as const]) {
    say(`  ${group}:`);
    const results = run(loads, coldMs, Object.keys(deployments));
    measurements.push(...named(group, each(results, say)), ...named(group, compared(results)));
  }
  for (const otherMs of otherColdMs) {
    measurements.push(
      ...named(`cold${otherMs / 1000}.coscaling`, compared(run(traces, otherMs, ['dilu', ...baselines]))),
    );
  }
  return measurements;
}
