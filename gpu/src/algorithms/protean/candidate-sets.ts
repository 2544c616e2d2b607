// The sets of slices between which PROTEAN chooses, for each type of device that it can cut.
import { computeSlicesOf, profilesOf } from '../../stages/geometry/mig-profiles.js';
import type { MigProfile } from '../../stages/geometry/mig-profiles.js';

/** Candidate sets of one type of device (PROTEAN, algorithm 2, lines 6, 20 and 23). */
export interface CandidateSets {
  /** Sets for best effort in the order in which they are tried, smallest slice first: [1g, 2g], then [3g]. */
  small: readonly (readonly MigProfile[])[];
  /** The slice beside a small set: 4g. */
  large: MigProfile;
  /** The slices where no small set will do: [4g, 3g]. */
  otherwise: readonly MigProfile[];
  /** The profile of the whole device, 7g: resource deficiency is relative to it. */
  whole: MigProfile;
}

/** The candidate sets of a type of device; undefined if it cannot be cut, or lacks a profile of these sizes. */
export function candidateSetsOf(type: string): CandidateSets | undefined {
  const sized = (compute: number, slots: number): MigProfile | undefined =>
    profilesOf(type).find((one) => computeSlicesOf(one.name) === compute && one.slots === slots);
  const [one, two, three, four, whole] = [sized(1, 1), sized(2, 2), sized(3, 4), sized(4, 4), sized(7, 8)];
  if (one === undefined || two === undefined || three === undefined || four === undefined || whole === undefined) {
    return undefined;
  }
  return { small: [[one, two], [three]], large: four, otherwise: [four, three], whole };
}
