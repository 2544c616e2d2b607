import type { Random } from '@gpuwhisk/common/system/random';
import type { SlowdownPredictor } from '../predict/slowdown-predictor.js';
import type { Quotas } from '../share/quotas.js';
import { faashare } from './faashare.js';
import { faashareLiteral } from './faashare-literal.js';
import { baselines } from './baselines/baselines.js';
import { leastLoaded } from './least-loaded.js';
import type { Admission } from './least-loaded.js';
import type { GpuState, Policy } from './policy.js';

/** What policies are made of; each takes what it needs. */
export interface PolicyNeeds {
  /** The model of a type of GPU in one mode. Asked for at every decision: a newer model takes the place of an older one. */
  predictorOf(gpu: Pick<GpuState, 'type' | 'mode'>): SlowdownPredictor;
  /** Shares of those that run together; absent: what each fills. */
  quotas?: Quotas;
  random: Random;
  admission: Admission;
}

/** An entry of the table of policies. */
export interface PolicyEntry {
  /** One line. */
  summary: string;
  make(needs: PolicyNeeds): Policy;
}

/** Every policy by its name. */
export const policies: Readonly<Record<string, PolicyEntry>> = {
  faashare: {
    summary: 'by SLO, in sets that fit into memory and that a prediction finds to meet their SLOs (FaaShare)',
    make: faashare,
  },
  'faashare-literal': {
    summary: "FaaShare's algorithm 1 to the letter, for comparison",
    make: faashareLiteral,
  },
  'least-loaded': {
    summary: 'the earliest deadline first, to the GPU with the least share given away',
    make: ({ admission }) => leastLoaded(admission),
  },
  ...baselines,
};

/** Why a name is no policy's, with the names that are; undefined if it is one. */
export function policyProblem(name: string): string | undefined {
  if (Object.hasOwn(policies, name)) return undefined;
  return `there is no policy '${name}'; there are ${Object.keys(policies).join(', ')}`;
}

/** A policy by its name. Throws RangeError for one that there is not. */
export function makePolicy(name: string, needs: PolicyNeeds): Policy {
  const problem = policyProblem(name);
  if (problem !== undefined) throw new RangeError(problem);
  return policies[name]!.make(needs);
}
