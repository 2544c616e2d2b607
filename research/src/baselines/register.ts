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
