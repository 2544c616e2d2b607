// Simple rules that a paper's policy must beat. None of them predicts anything.
import type { PolicyRecord } from '@gpuwhisk/gpu/stages/policy-record';

/**
 * Work with an SLO by deadline, then best effort by arrival, each task with the whole GPU, at most `most` at once. A task that
 * can no longer meet its SLO counts as best effort.
 */
function strictFirstAtMost(most: number): PolicyRecord {
  return {
    summary: `work with an SLO first, by deadline, at most ${most} on a GPU, each with all of it`,
    admit: 'latest-start',
    order: 'deadline-first',
    share: 'unlimited',
    place: 'fewest-tasks',
    settings: { slots: most },
  };
}

export const strictFirst1 = strictFirstAtMost(1);
export const strictFirst2 = strictFirstAtMost(2);
export const strictFirst3 = strictFirstAtMost(3);
export const strictFirst4 = strictFirstAtMost(4);

/**
 * One queue, work with an SLO first, over slices that are never cut again: each task alone on the largest slice that is free and
 * has the memory. The cluster has the slices (4g and 3g of each GPU); a GPU that is not cut counts as one slice.
 */
export const staticSlices: PolicyRecord = {
  summary: 'work with an SLO first, by deadline, one task on a slice, the largest free slice first',
  admit: 'latest-start',
  order: 'deadline-first',
  share: 'unlimited',
  place: 'largest-free',
  settings: { slots: 1 },
};

/** The shortest first, two on a GPU, each with all of it. */
export const shortestFirst2: PolicyRecord = {
  summary: 'the shortest first, at most two on a GPU, each with all of it',
  admit: 'before-slo',
  order: 'shortest-first',
  share: 'unlimited',
  place: 'fewest-tasks',
  settings: { slots: 2 },
};

/**
 * A fixed MPS percentage of each function (CUDA_MPS_ACTIVE_THREAD_PERCENTAGE in NVIDIA's MPS documentation): the declared one, else
 * the class at or above the observed use of the SMs. The percentages on a GPU sum to at most 100.
 */
export const mpsLimit: PolicyRecord = {
  summary: 'work with an SLO first, by deadline, each with a fixed MPS percentage, at most 100 % on a GPU',
  admit: 'latest-start',
  order: 'deadline-first',
  share: 'filling',
  place: 'fewest-tasks',
};
