import type { PolicyEntry, PolicyNeeds } from '../registry.js';
import { elasticflow } from './elasticflow.js';
import { exclusive } from './exclusive.js';
import { fastGshare } from './fast-gshare.js';
import { fluidfaas } from './fluidfaas.js';
import { greedy } from './greedy.js';
import type { GreedyRule } from './greedy.js';
import { mpsEqual } from './mps-equal.js';
import { fcfs, memoryPriority, timePriority } from './queue-orders.js';
import { tgs } from './tgs.js';

/** Tasks on a GPU: of two, three and four the number that ends 120 jobs of FaaShare's table I soonest in replay. */
const equalSlots = 2;

const entry = (summary: string, rule: (needs: PolicyNeeds) => GreedyRule): PolicyEntry => ({
  summary,
  make: (needs) => greedy(rule(needs), needs.admission),
});

/** Policies of other systems, for comparison; each is documented where it is defined. */
export const baselines: Readonly<Record<string, PolicyEntry>> = {
  exclusive: entry('whole GPUs, first come, first served', () => exclusive),
  elasticflow: entry('whole GPUs, by deadline, then the shortest', () => elasticflow),
  tgs: entry('a job with an SLO and one without on a GPU, the second held to what the first leaves', () => tgs),
  fluidfaas: entry("slices of MIG's sizes, the smallest that meets the SLO", fluidfaas),
  'fast-gshare': entry('the share with most throughput for its size, packed as rectangles', fastGshare),
  'mps-equal': entry('two tasks on a GPU, whose parts the hardware makes equal, first come, first served', () =>
    mpsEqual(equalSlots),
  ),
  fcfs: entry('first come, first served, each with the share that it fills', () => fcfs),
  'time-priority': entry('the shortest first, each with the share that it fills', () => timePriority),
  'memory-priority': entry('the least memory first, each with the share that it fills', () => memoryPriority),
};
