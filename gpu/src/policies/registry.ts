import { auto } from './auto.js';
import { dilu } from './dilu.js';
import { edfDegradation } from './edf-degradation.js';
import { edfUtil } from './edf-util.js';
import { elasticflow } from './elasticflow.js';
import { exclusive } from './exclusive.js';
import { faashare } from './faashare.js';
import { faashareLiteral } from './faashare-literal.js';
import { fastGshare } from './fast-gshare.js';
import { fcfs } from './fcfs.js';
import { fluidfaas } from './fluidfaas.js';
import { leastLoaded } from './least-loaded.js';
import { longestFirst } from './longest-first.js';
import { memoryPriority } from './memory-priority.js';
import { mpsEqual } from './mps-equal.js';
import type { PolicyRecord } from './policy.js';
import { protean } from './protean.js';
import { random } from './random.js';
import { shortestRemaining } from './shortest-remaining.js';
import { smore } from './smore.js';
import { smoreLiteral } from './smore-literal.js';
import { tgs } from './tgs.js';
import { timePriority } from './time-priority.js';
import { uncapped } from './uncapped.js';

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
