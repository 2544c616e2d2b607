// A function beside a training job on one GPU (Dilu, section 5.2): latencies by burstiness, and the size of MaxTokens.
import { seededRandom } from '@gpuwhisk/common/system/random';
import { noScaling } from '@gpuwhisk/gpu/scale/scale';
import type { BenchContext, Measurement } from '../bench.js';
import { runCluster } from '../replay/dilu/cluster.js';
import type { LoadedFunction, SharingWay, SubmittedTraining } from '../replay/dilu/cluster.js';
import type { FleetShape, PackingRule } from '../replay/dilu/fleet.js';
import { gammaLoad } from '../replay/dilu/loads.js';
import { exclusive } from '../replay/dilu/rules.js';
import { outputTokensOf, ratePerS, readServedModels, type ServedModel } from '../replay/dilu/served-models.js';
import type { Control } from '../replay/dilu/shared-device.js';
import { readTrainings, type TrainedModel } from '../replay/dilu/trainings.js';
import { meanOf, percentile } from '../statistics.js';

const shape: FleetShape = { nodes: 1, perNode: 2, memoryMiB: 40 * 1024 };
const lengthS = 300;
/** Requests come at this part of the rate that the request serves. */
const loadPart = 0.5;
const variations = [1, 2, 4, 6];
/** Of the loads with which the size of MaxTokens is changed: Poisson arrivals. */
const steady = 1;
const maxTokens = [0.25, 0.5, 0.75, 1, 1.5, 2, 4];
/** Seeds, at most: a seed plays each case period by period. */
const mostSeeds = 10;

/** Functions with the training beside each: their limits stay within γ = 1.5. The last one is a language model. */
const cases: readonly { model: string; kind: LoadedFunction['kind']; training: TrainedModel }[] = [
  { model: 'roberta_large', kind: 'inference', training: { model: 'resnet152', batch: 16 } },
  { model: 'llama2_7b', kind: 'llm', training: { model: 'bert_base', batch: 32 } },
];

/** Both on one device, with their limits or their requests as the most that they get. */
const together =
  (most: 'request' | 'limit'): PackingRule =>
  ({ devices: [device] }, instance) =>
    device && [{ device, request: instance.request, limit: instance[most], memoryMiB: instance.memoryMiB }];

function way(rule: PackingRule, control: Control): SharingWay {
  return { rule, control, scale: noScaling, served: () => ({ request: 0, limit: 0 }) };
}

/** Ways to share the device, by their names in figures. */
const ways = {
  exclusive: { ...way(exclusive, 'fixed'), isExclusive: true },
  mpsL: way(together('limit'), 'fixed'),
  mpsR: way(together('request'), 'fixed'),
  dilu: way(together('limit'), { maxTokens: 1 }),
} as const satisfies Record<string, SharingWay>;

/** One run: percentiles of latencies (of a language model's for each output token), late requests, and steps of the training. */
interface Shared {
  p50Ms: number;
  p95Ms: number;
  svr: number;
  steps: number;
}

function runOnce(loaded: LoadedFunction, training: SubmittedTraining, sharing: SharingWay): Shared {
  const result = runCluster([loaded], [training], sharing, shape, { lengthS, coldMs: 0 });
  const [{ latenciesMs, violations, requests, name }] = result.functions as [(typeof result.functions)[number]];
  const tokens = outputTokensOf(name);
  return {
    p50Ms: percentile(latenciesMs, 50) / tokens,
    p95Ms: percentile(latenciesMs, 95) / tokens,
    svr: violations / requests,
    steps: result.trainings[0]?.steps ?? 0,
  };
}

/** Means over seeds; `training`: steps over those of the training alone. */
function meansOf(
  runs: readonly Shared[],
  alone: readonly Shared[],
): Record<'p50Ms' | 'p95Ms' | 'svr' | 'training', number> {
  return {
    p50Ms: meanOf(runs.map(({ p50Ms }) => p50Ms)),
    p95Ms: meanOf(runs.map(({ p95Ms }) => p95Ms)),
    svr: meanOf(runs.map(({ svr }) => svr)),
    training: meanOf(runs.map(({ steps }, at) => steps / (alone[at]?.steps ?? NaN))),
  };
}

/**
 * A function beside a training on one GPU. Extrapolated: no data at hand has training beside inference, or tokens.
 * `collocation.MODEL.cvN.WAY.FIGURE`: gamma arrivals with a coefficient of variation of N; `p50Ms`, `p95Ms`: of latencies, for a
 * language model for each output token; `svr`: requests later than their SLO; `training`: steps over those alone.
 * `maxTokens.MODEL.F.FIGURE`: under tokens with MaxTokens F times the blocks of a period alone.
 */
export async function collocation({ options, say }: BenchContext): Promise<Measurement[]> {
  const models = await readServedModels(cases.map(({ model }) => model));
  const trainings = await readTrainings(cases.map(({ training }) => training));
  const seeds = Array.from({ length: Math.min(options.samples, mostSeeds) }, (_, at) => options.seed * 1000 + at);
  const measurements: Measurement[] = [];
  for (const [at, { kind }] of cases.entries()) {
    const model = models[at] as ServedModel;
    const { name, surface, batch, request, limit } = model;
    const profiled = trainings[at] as (typeof trainings)[number];
    const training: SubmittedTraining = {
      ...profiled,
      workers: 1,
      syncMs: profiled.syncMs(1),
      steps: Infinity,
      memoryMiB: 8192,
      atS: 0,
    };
    say(`  ${name}: ${request} to ${limit}, beside ${profiled.name}: ${profiled.request} to ${profiled.limit}`);
    const runs = (cv: number, sharing: SharingWay): Shared[] =>
      seeds.map((seed) => {
        const load = gammaLoad(loadPart * ratePerS(surface, batch, request), cv, lengthS, seededRandom(seed));
        return runOnce({ model, kind, memoryMiB: 24 * 1024, load }, training, sharing);
      });
    const told = (title: string, means: ReturnType<typeof meansOf>): void => {
      say(
        `    ${title}: p95 ${means.p95Ms.toFixed(1)} ms, SVR ${means.svr.toFixed(4)}, training ${means.training.toFixed(3)}`,
      );
      for (const [figure, value] of Object.entries(means)) measurements.push({ name: `${title}.${figure}`, value });
    };
    for (const cv of variations) {
      const alone = runs(cv, ways.exclusive);
      for (const [key, sharing] of Object.entries(ways)) {
        told(`collocation.${name}.cv${cv}.${key}`, meansOf(key === 'exclusive' ? alone : runs(cv, sharing), alone));
      }
      if (cv !== steady) continue;
      for (const size of maxTokens) {
        told(`maxTokens.${name}.${size}`, meansOf(runs(cv, way(together('limit'), { maxTokens: size })), alone));
      }
    }
  }
  return measurements;
}
