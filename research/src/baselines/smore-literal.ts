import { degradationDefaults } from '@gpuwhisk/gpu/algorithms/smore/degradation-plan';
import type { PolicyRecord } from '@gpuwhisk/gpu/stages/policy-record';

/**
 * SMORE to the letter (thesis algorithm 3.1): always five places drawn at random, the score of equation 3.11 alone, rounds of
 * 100 ms for tasks that found no place, and no guard.
 */
export const smoreLiteral: PolicyRecord = {
  summary: 'the algorithm of the thesis to the letter: the best of five drawn places by predicted degradation',
  admit: 'latest-start',
  plan: 'by-degradation-literal',
};

/** The algorithm to the letter: drawn places, equation 3.11 alone, and rounds in which all tasks are tried. */
export const literalDegradation: typeof degradationDefaults = {
  ...degradationDefaults,
  perRequest: 0,
  countsExcess: 0,
  warmFirst: 0,
  alwaysDraws: 1,
  fastAbove: Infinity,
  mostFailures: Infinity,
  firstBackOffMs: 100,
  longestBackOffMs: 100,
  marksRisk: 0,
};
