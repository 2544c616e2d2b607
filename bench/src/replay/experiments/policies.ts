import { baselines } from '@gpuwhisk/gpu/policies/registry';
import { named, ours, oursWithoutQuotas, type PolicyMaker } from '../setting.js';

/** The policy whose gains are told. */
export const oursName = 'faashare';

/** FaaShare and every baseline. */
export function allPolicies(): Map<string, PolicyMaker> {
  return new Map([
    [oursName, ours],
    ...Object.keys(baselines).map((name): [string, PolicyMaker] => [name, named(name)]),
  ]);
}

/** FaaShare with parts left out, and its algorithm to the letter. */
export function ablatedPolicies(): Map<string, PolicyMaker> {
  return new Map([
    [oursName, ours],
    ['without the optimiser', oursWithoutQuotas],
    ['without the queue: fcfs', named('fcfs')],
    ['to the letter', named('faashare-literal')],
  ]);
}

/** FaaShare and the orders of a queue that it is compared with (FaaShare, figures 2 and 18). */
export function queueOrders(): Map<string, PolicyMaker> {
  return new Map([
    [oursName, ours],
    ...['fcfs', 'time-priority', 'memory-priority'].map((name): [string, PolicyMaker] => [name, named(name)]),
  ]);
}
