import type { PolicyRecord } from '@gpuwhisk/gpu/stages/policy-record';

/** FaaShare, algorithm 1 as it is printed. */
export const faashareLiteral: PolicyRecord = {
  summary: "FaaShare's algorithm 1 to the letter, for comparison",
  admit: 'always',
  plan: 'sub-queues-literal',
};
