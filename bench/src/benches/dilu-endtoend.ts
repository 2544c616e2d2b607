// Four training jobs and three functions on five nodes (Dilu, section 5.4, figures 18 and 19).
import { seededRandom } from '@gpuwhisk/common/system/random';
import { oversubscriptionDefaults } from '@gpuwhisk/gpu/place/oversubscription';
import { diluScale, diluScaleDefaults } from '@gpuwhisk/gpu/scale/dilu';
import { inflessDefaults, inflessScale } from '@gpuwhisk/gpu/scale/infless';
import type { BenchContext, Measurement } from '../bench.js';
import { runCluster } from '../replay/dilu/cluster.js';
import type { ClusterResult, LoadedFunction, SharingWay, SubmittedTraining } from '../replay/dilu/cluster.js';
import { boundsOf, type FleetShape } from '../replay/dilu/fleet.js';
import { mostSpans } from '../replay/dilu/ledger-packer.js';
import { poissonLoad, readDiluTrace, type Rates } from '../replay/dilu/loads.js';
import { exclusive, infless, ours, type RuleParts } from '../replay/dilu/rules.js';
import { ratePerS, readServedModels, type ServedModel } from '../replay/dilu/served-models.js';
import { readTrainings, type TrainedModel } from '../replay/dilu/trainings.js';
import { meanOf, own, pairedInterval } from '../statistics.js';

/** The paper's testbed (section 5.1). */
const shape: FleetShape = { nodes: 5, perNode: 4, memoryMiB: 40 * 1024 };
const lengthS = 600;
/** A start until it serves, ms: as in part `coscaling`. */
const coldMs = 5000;
/** Seeds, at most: a seed plays seven ways period by period. */
const mostSeeds = 10;

/** The functions: the language model has the steady load, as its instances are the ones that cost most. */
const functions = [
  { name: 'roberta_large', kind: 'inference', memoryMiB: 5 * 1024, trace: 'bursty', times: 25 },
  { name: 'resnet152', kind: 'inference', memoryMiB: 4 * 1024, trace: 'periodic', times: 25 },
  { name: 'llama2_7b', kind: 'llm', memoryMiB: 30 * 1024, trace: 'poisson', times: 1 },
] as const;
/** Requests per second of the Poisson load. */
const poissonPerS = 10;

/** The jobs: two with two members and two with four, submitted one after the other. Alone each takes about 300 s. */
const trainings: readonly (TrainedModel & { workers: number; memoryMiB: number; atS: number })[] = [
  { model: 'resnet152', batch: 16, workers: 2, memoryMiB: 12 * 1024, atS: 0 },
  { model: 'roberta_large', batch: 8, workers: 4, memoryMiB: 18 * 1024, atS: 30 },
  { model: 'bert_base', batch: 32, workers: 2, memoryMiB: 8 * 1024, atS: 60 },
  { model: 'resnet152', batch: 16, workers: 4, memoryMiB: 12 * 1024, atS: 90 },
];
const aloneS = 300;

const whole: RuleParts = { complementarity: true, affinity: true, spans: mostSpans };
const bounds = boundsOf(oversubscriptionDefaults);

const at =
  (share: (model: ServedModel) => number) =>
  (model: ServedModel): { request: number; limit: number } => {
    const rate = ratePerS(model.surface, model.batch, share(model));
    return { request: rate, limit: rate };
  };

/** INFless's keep-alive on traces that play ten minutes in a second. */
const inflessPlayed = (): SharingWay['scale'] => inflessScale({ ...inflessDefaults, minuteS: 1, shortMinutes: 200 });

function diluWay(parts: Partial<RuleParts>): SharingWay {
  return {
    rule: ours(bounds, { ...whole, ...parts }),
    control: { maxTokens: 1 },
    scale: diluScale(diluScaleDefaults),
    served: ({ surface, batch, request, limit }) => ({
      request: ratePerS(surface, batch, request),
      limit: ratePerS(surface, batch, limit),
    }),
  };
}

/** Ways to share the cluster, by their names in figures. A way has state of its own for each run. */
const ways = {
  exclusive: (): SharingWay => ({
    ...{ rule: exclusive, control: 'fixed', isExclusive: true, scale: inflessPlayed(), served: at(() => 1) },
  }),
  inflessL: (): SharingWay => ({
    ...{ rule: infless('limit'), control: 'fixed', scale: inflessPlayed(), served: at(({ limit }) => limit) },
  }),
  inflessR: (): SharingWay => ({
    ...{ rule: infless('request'), control: 'fixed', scale: inflessPlayed(), served: at(({ request }) => request) },
  }),
  dilu: () => diluWay({}),
  withoutRc: () => diluWay({ complementarity: false, spans: 1 }),
  withoutWa: () => diluWay({ affinity: false }),
  withoutVs: (): SharingWay => ({ ...diluWay({}), control: 'fixed' }),
} as const;
type WayName = keyof typeof ways;

/** Figures of one seed of one way; those of training and throughput are over `exclusive`. */
interface Figures {
  gpus: number;
  mostGpus: number;
  svr: number;
  svrMost: number;
  svrDeviation: number;
  coldStarts: number;
  jct: number;
  jctLeast: number;
  jctMost: number;
  inferenceThroughput: number;
  trainingThroughput: number;
}

function figuresOf(result: ClusterResult, alone: ClusterResult): Figures {
  const svrs = result.functions.map(({ violations, requests }) => violations / requests);
  const svr = meanOf(svrs);
  const over = <One>(ours: readonly One[], theirs: readonly One[], of: (one: One) => number): number[] =>
    ours.map((one, i) => of(one) / of(theirs[i] as One));
  const jcts = over(result.trainings, alone.trainings, ({ jctS = NaN }) => jctS);
  return {
    gpus: result.gpus,
    mostGpus: result.mostGpus,
    svr,
    svrMost: Math.max(...svrs),
    svrDeviation: Math.sqrt(meanOf(svrs.map((one) => (one - svr) ** 2))),
    coldStarts: result.functions.reduce((sum, { coldStarts }) => sum + coldStarts, 0),
    jct: meanOf(jcts),
    jctLeast: Math.min(...jcts),
    jctMost: Math.max(...jcts),
    inferenceThroughput: meanOf(
      over(
        result.functions,
        alone.functions,
        ({ requests, violations, occupiedS }) => (requests - violations) / occupiedS,
      ),
    ),
    trainingThroughput: meanOf(over(result.trainings, alone.trainings, ({ steps, occupiedS }) => steps / occupiedS)),
  };
}

/**
 * Training jobs and functions together under every way to share a small cluster. Extrapolated: no data at hand has training beside
 * inference, or tokens. `gpus`: in use on average; `svr`: mean over functions of the part of requests later than their SLO, with
 * `svrMost` and `svrDeviation` over functions; `jct`: of training jobs over that under `exclusive`; `inferenceThroughput`: requests
 * within their SLO, `trainingThroughput`: steps, for each second of a device, over those under `exclusive`.
 */
export async function endToEnd({ options, say }: BenchContext): Promise<Measurement[]> {
  const models = await readServedModels(functions.map(({ name }) => name));
  const traces = { bursty: await readDiluTrace('bursty'), periodic: await readDiluTrace('periodic') };
  const rates = (trace: (typeof functions)[number]['trace']): Rates =>
    trace === 'poisson' ? new Array<number>(lengthS).fill(poissonPerS) : traces[trace].slice(0, lengthS);
  const profiled = await readTrainings(trainings);
  const jobs = profiled.map((one, i): SubmittedTraining => {
    const { workers, memoryMiB, atS } = trainings[i] as (typeof trainings)[number];
    const syncMs = one.syncMs(workers);
    const steps = Math.round((aloneS * 1000) / (one.curve.aloneMs + syncMs));
    return { ...one, name: `training${i}-${one.name}`, workers, memoryMiB, atS, syncMs, steps };
  });
  for (const { name, request, limit, steps } of jobs) {
    say(`  ${name}: request ${request}, limit ${limit}, ${steps} steps`);
  }
  const results = new Map<WayName, Figures[]>();
  for (let sample = 0; sample < Math.min(options.samples, mostSeeds); sample += 1) {
    const loaded = functions.map(({ kind, memoryMiB, trace, times }, i): LoadedFunction => {
      const random = seededRandom(options.seed * 1000 + sample * functions.length + i);
      return { model: models[i] as ServedModel, kind, memoryMiB, load: poissonLoad(rates(trace), times, random) };
    });
    let alone: ClusterResult | undefined;
    for (const [name, way] of Object.entries(ways)) {
      const result = runCluster(loaded, jobs, way(), shape, { lengthS, coldMs });
      alone ??= result;
      const known = results.get(name as WayName) ?? [];
      results.set(name as WayName, [...known, figuresOf(result, alone)]);
    }
  }
  return [...results].flatMap(([name, all]) => {
    const of = (figure: keyof Figures): number[] => all.map((one) => one[figure]);
    const [first] = all;
    const found = Object.keys(first ?? {}).flatMap((figure) => {
      const values = of(figure as keyof Figures);
      const { mean, low, high } = pairedInterval(values, values, own, seededRandom(options.seed));
      const title = `endToEnd.${name}.${figure}`;
      return [
        { name: title, value: mean },
        { name: `${title}Low`, value: low },
        { name: `${title}High`, value: high },
      ];
    });
    const shown = (figure: keyof Figures, digits: number): string => meanOf(of(figure)).toFixed(digits);
    say(
      `  ${name}: ${shown('gpus', 1)} GPUs (most ${shown('mostGpus', 1)}), SVR ${shown('svr', 4)}, JCT ${shown('jct', 3)}, ` +
        `throughput ${shown('inferenceThroughput', 2)} and ${shown('trainingThroughput', 2)}`,
    );
    return found;
  });
}
