import { auto } from '../algorithms/auto/auto.js';
import { dilu } from '../algorithms/dilu/dilu.js';
import { edfDegradation } from '../baselines/edf-degradation.js';
import { edfUtil } from '../baselines/edf-util.js';
import { elasticflow } from '../baselines/elasticflow.js';
import { exclusive } from '../algorithms/exclusive/exclusive.js';
import { faashare } from '../algorithms/faashare/faashare.js';
import { faashareLiteral } from '../baselines/faashare-literal.js';
import { fastGshare } from '../baselines/fast-gshare.js';
import { fcfs } from '../baselines/fcfs.js';
import { fluidfaas } from '../baselines/fluidfaas.js';
import { leastLoaded } from '../algorithms/least-loaded/least-loaded.js';
import { longestFirst } from '../baselines/longest-first.js';
import { memoryPriority } from '../baselines/memory-priority.js';
import { mpsEqual } from '../baselines/mps-equal.js';
import type { PolicyRecord } from '../stages/policy-record.js';
import { protean } from '../algorithms/protean/protean.js';
import { random } from '../baselines/random.js';
import { shortestRemaining } from '../baselines/shortest-remaining.js';
import { smore } from '../algorithms/smore/smore.js';
import { smoreLiteral } from '../baselines/smore-literal.js';
import { tgs } from '../baselines/tgs.js';
import { timePriority } from '../baselines/time-priority.js';
import { uncapped } from '../baselines/uncapped.js';

/** Policies of other systems, for comparison; each is documented where it is defined. */
export const baselines: Readonly<Record<string, PolicyRecord>> = {
  exclusive,
  elasticflow,
  tgs,
  fluidfaas,
  'fast-gshare': fastGshare,
  'mps-equal': mpsEqual,
  fcfs,
  'time-priority': timePriority,
  'memory-priority': memoryPriority,
  'longest-first': longestFirst,
  'shortest-remaining': shortestRemaining,
  uncapped,
};

/** Policies that SMORE is compared with beside training jobs. */
export const coLocationBaselines: Readonly<Record<string, PolicyRecord>> = {
  random,
  'edf-util': edfUtil,
  'edf-degradation': edfDegradation,
};

const known: Record<string, PolicyRecord> = {
  auto,
  faashare,
  'faashare-literal': faashareLiteral,
  'least-loaded': leastLoaded,
  smore,
  'smore-literal': smoreLiteral,
  dilu,
  protean,
  ...baselines,
  ...coLocationBaselines,
};

/** Every policy by its name, those of policy modules included. */
export const policies: Readonly<Record<string, PolicyRecord>> = known;

/** Adds a policy of a policy module; its name must be free. The result removes it. */
export function addPolicy(name: string, policy: PolicyRecord): () => void {
  known[name] = policy;
  return () => delete known[name];
}
