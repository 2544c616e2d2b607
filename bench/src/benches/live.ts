import type { Bench } from '../bench.js';
import { comparison, liveRun } from '../live/live-run.js';
import type { TraceSettings } from '../live/trace.js';

const mostSeeds = 3;
/** FaaShare's trace (section IX-A): 120 jobs, compressed to arrive within 100 s, at the high load of replay. */
const settings: TraceSettings = { jobs: 120, gpus: 4, load: 0.9, spanMs: 100_000 };

/** FaaShare's jobs through the API on simulated GPUs, compared with the simulator's prediction. */
export const live: Bench = {
  summary: "FaaShare's 120 jobs through the API on simulated GPUs, compared with replay's prediction",
  parts: ['faashare'],
  simulated: true,
  async run(context) {
    const { seed: first, samples } = context.options;
    const seeds = Array.from({ length: Math.min(mostSeeds, samples) }, (_, i) => first + i);
    const { traces, coldMs, warmMs } = await liveRun(context, 'rtx3090', 'faashare', settings, seeds);
    return [...comparison(traces), { name: 'liveColdMs', value: coldMs }, { name: 'liveWarmMs', value: warmMs }];
  },
};
