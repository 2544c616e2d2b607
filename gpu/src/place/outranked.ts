import type { Candidate, Ranked } from './candidate.js';
import type { Refusal } from './filters/fact-filter.js';

/**
 * The rule by which the least-loaded placement ranks `chosen` before `other`, with the numbers of both. `isBefore`: `other` has
 * the better rank, and was not reached.
 */
export function outrankedBy(chosen: Candidate<Ranked>, other: Candidate<Ranked>, isBefore: boolean): Refusal {
  const { load, freeMiB } = other.account;
  const { load: chosenLoad, freeMiB: chosenFreeMiB } = chosen.account;
  if (isBefore)
    return { reason: 'the chosen one was found first', numbers: { load, chosenLoad, freeMiB, chosenFreeMiB } };
  if (other.isFull !== chosen.isFull) {
    return { reason: 'more than its SMs would be given away', numbers: { load, chosenLoad } };
  }
  if ((other.joined === undefined) !== (chosen.joined === undefined)) {
    return { reason: 'no instance of the function idles there, as on the chosen one', numbers: { load, chosenLoad } };
  }
  if (other.reclaims !== chosen.reclaims) {
    return { reason: 'idle instances would have to go, unlike on the chosen one', numbers: { freeMiB, chosenFreeMiB } };
  }
  if (load !== chosenLoad) {
    return { reason: 'more of its SMs are given away than of the chosen one', numbers: { load, chosenLoad } };
  }
  if (freeMiB !== chosenFreeMiB) {
    return { reason: 'less of its memory is free than of the chosen one', numbers: { freeMiB, chosenFreeMiB } };
  }
  return { reason: 'as good as the chosen one, which is listed first', numbers: { load, freeMiB } };
}
