// Adds the baselines to the policies of this process, by the checks that a policy module of an operator passes.
import { registerModules } from '@gpuwhisk/gpu/policies/policy-modules';
import module from './module.js';

// The code as it is compiled, not the one file that research/build.mjs makes of it: golden.test.ts compares the decisions of that file.
await registerModules([{ path: 'research/dist/baselines.mjs', sha256: 'compiled', text: '' }], () =>
  Promise.resolve({ default: module }),
);

/** The names of all baselines. */
export const baselines: readonly string[] = Object.keys(module.policies ?? {});

/** What FaaShare is compared with in replay. */
export const faashareBaselines: readonly string[] = [
  ...['exclusive', 'elasticflow', 'tgs', 'fluidfaas', 'fast-gshare', 'mps-equal', 'fcfs', 'time-priority'],
  ...['memory-priority', 'longest-first', 'shortest-remaining', 'uncapped'],
];

/** The baselines by what they stand for, each in one group: rivals of the platform's policies in comparisons. */
export const rivals = {
  /** Rules of a few lines, which predict no slowdown. */
  simple: [
    ...['strict-first-1', 'strict-first-2', 'strict-first-3', 'strict-first-4', 'static-4g3g', 'shortest-first-2'],
    ...['mps-equal', 'mps-limit', 'uncapped', 'random'],
  ],
  /** Orders of the queue, with shares that sum to one GPU. */
  orders: ['fcfs', 'time-priority', 'memory-priority', 'longest-first', 'shortest-remaining'],
  /** Other systems, with the differences that docs/baselines.md lists. */
  systems: ['elasticflow', 'tgs', 'fluidfaas', 'fast-gshare', 'mqfq-sticky', 'edf-util', 'edf-degradation'],
  /** Baselines of the groups before with shares that may sum to two GPUs. */
  oversubscribing: [
    ...['fcfs-2x', 'time-priority-2x', 'memory-priority-2x', 'longest-first-2x', 'shortest-remaining-2x'],
    ...['elasticflow-2x', 'tgs-2x', 'fluidfaas-2x', 'fast-gshare-2x', 'uncapped-2x'],
  ],
  /** The papers' algorithms as printed. */
  papers: ['faashare-literal', 'faashare-paper', 'smore-literal', 'protean-literal'],
} as const satisfies Readonly<Record<string, readonly string[]>>;
