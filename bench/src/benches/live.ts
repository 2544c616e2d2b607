import type { Bench, BenchContext, Measurement } from '../bench.js';
import { imageFunction, textFunction } from '../live/cpu-functions.js';
import { cpuRun } from '../live/cpu-run.js';
import { comparison, learnedFigures } from '../live/live-figures.js';
import { liveRun } from '../live/live-run.js';
import type { TraceSettings } from '../live/trace.js';

const mostSeeds = 3;
const shared = { type: 'rtx3090', policy: 'faashare' } as const;
/** FaaShare's trace (section IX-A): 120 jobs, compressed to arrive within 100 s, at the high load of replay. */
const faashare: TraceSettings = { jobs: 120, gpus: 4, load: 0.9, spanMs: 100_000 };

/** The functions of table I that leave room for others on an RTX 3090: few, so that the same sets are formed often. */
const recurring = ['resnet18-8', 'resnet18-16', 'resnet18-8-training', 'resnet18-16-training'];
/** They share GPUs, so that the load is above what GPUs can do that serve one job at a time. */
const trained: TraceSettings = { jobs: 120, gpus: 2, load: 1.3, spanMs: 60_000 };
const training = { mostRounds: 4, searchesWithinMs: 120_000 };

const [mostCpuStarts, callers] = [5, 2];

const parts: Readonly<Record<string, (context: BenchContext, seeds: readonly number[]) => Promise<Measurement[]>>> = {
  async faashare(context, seeds) {
    const run = await liveRun(context, { ...shared, name: 'faashare', trace: faashare, seeds });
    return [
      ...comparison(run.traces),
      { name: 'liveColdMs', value: run.coldMs },
      { name: 'liveWarmMs', value: run.warmMs },
    ];
  },
  async trained(context, seeds) {
    const own = { name: 'trained', trace: trained, seeds, functions: recurring, training };
    const { traces } = await liveRun(context, { ...shared, ...own });
    return [...learnedFigures(traces), ...comparison(traces, '.trained')];
  },
  async cpu(context) {
    const { samples, seconds } = context.options;
    const amounts = { starts: Math.min(mostCpuStarts, samples), seconds, callers };
    return cpuRun(context, [await imageFunction(), textFunction], amounts);
  },
};

/**
 * The platform as a whole: FaaShare's jobs and a trace of few functions that it has learned before on simulated GPUs, both
 * compared with the simulator's prediction, and an image and a text function on the CPU. Functions are injected.
 */
export const live: Bench = {
  summary:
    "FaaShare's 120 jobs and recurring ones on simulated GPUs against replay's prediction; real functions on the CPU",
  parts: Object.keys(parts),
  simulated: true,
  async run(context) {
    const { seed: first, samples, parts: chosen } = context.options;
    const seeds = Array.from({ length: Math.min(mostSeeds, samples) }, (_, i) => first + i);
    const measurements: Measurement[] = [];
    for (const [name, measure] of Object.entries(parts)) {
      if (chosen.length === 0 || chosen.includes(name)) measurements.push(...(await measure(context, seeds)));
    }
    return measurements;
  },
};
