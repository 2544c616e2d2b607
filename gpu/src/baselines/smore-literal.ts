import type { PolicyRecord } from '../stages/policy-record.js';

/**
 * SMORE to the letter (thesis algorithm 3.1): always five places drawn at random, the score of equation 3.11 alone, rounds of
 * 100 ms for tasks that found no place, and no guard.
 */
export const smoreLiteral: PolicyRecord = {
  summary: 'the algorithm of the thesis to the letter: the best of five drawn places by predicted degradation',
  admit: 'latest-start',
  plan: 'by-degradation-literal',
};
