// What PROTEAN wants devices of one type to be cut into (algorithm 2, lines 8 to 23).
import { candidateSetsOf } from './candidate-sets.js';
import type { CandidateSets } from './candidate-sets.js';
import type { ExpectedFunction } from './expected-load.js';
import type { GeometryTarget } from '../../stages/geometry/geometry.js';
import type { MigProfile } from '../../stages/geometry/mig-profiles.js';
import { usableMiB } from '../../ledger/places.js';
import { packed, thresholds } from './slice-model.js';
import type { SliceModel } from './slice-model.js';

/** The load of the devices of one type. */
export interface TypeLoad {
  /** All functions of which requests are expected. */
  expected: readonly ExpectedFunction[];
  devices: number;
  /** The part of it that each device has, above 0 and at most 1. */
  part: number;
}

/** The target of the devices of `type`, one that has candidate sets; without `profiles` if no requests are expected. */
export function proteanTarget(model: SliceModel, type: string, { expected, devices, part }: TypeLoad): GeometryTarget {
  // eslint-disable-next-line @typescript-eslint/no-non-null-assertion -- asked for types with candidate sets only
  const sets = candidateSetsOf(type)!;
  const without = expected.filter(({ task }) => task.sloMs === undefined);
  const strict = expected.filter(({ task }) => task.sloMs !== undefined);
  const batches = without.reduce((sum, one) => sum + one.batches, 0);
  const totalMiB = without.reduce((sum, one) => sum + one.batches * batchMiBOf(one, sets), 0);
  const [bestEffort, memoryMiB] = [Math.ceil(batches * part), Math.round(totalMiB * part)];
  const base = { type, devices, bestEffort, memoryMiB };
  if (expected.length === 0) return { ...base, reason: 'no requests are expected' };
  const batchMiB = batches === 0 ? 1 : totalMiB / batches;
  const bounds = thresholds(model, {
    ...{ type, sets, batchMiB },
    bestEffort: without.map((one) => ({ task: one.task, weight: one.batches })),
    strict: strict.map((one) => ({ task: one.task, weight: one.requests })),
  });
  const told = { ...base, ...bounds, ...leftWholeFor(expected, sets) };
  const load = `${bestEffort} best-effort batches and ${memoryMiB} MiB expected on a device`;
  const otherwise = (why: string): GeometryTarget => ({
    ...told,
    profiles: namesOf(sets.otherwise),
    reason: `${load}, ${why}`,
  });
  const largestMiB = Math.max(0, ...without.map((one) => batchMiBOf(one, sets)));
  const fits = (set: readonly MigProfile[]): boolean =>
    set.some((slice) => usableMiB(slice) >= largestMiB) &&
    set.reduce((sum, slice) => sum + usableMiB(slice), 0) >= memoryMiB &&
    packed(set, bestEffort, batchMiB).reduce((sum, here) => sum + here, 0) >= bestEffort;
  const chosen = sets.small.find(fits);
  if (chosen === undefined) return otherwise('more than small slices hold');
  if (chosen === sets.small[0] && strict.length > 0) {
    if (bounds === undefined) return otherwise('and small slices suit strict requests at no number');
    if (bestEffort < bounds.low) return otherwise(`fewer than ${bounds.low}`);
    if (bestEffort > bounds.high) return otherwise(`more than ${bounds.high}`);
  }
  const profiles = namesOf([sets.large, ...chosen.toReversed()]);
  return { ...told, profiles, reason: `${load}, which ${namesOf(chosen).join(' and ')} hold` };
}

function namesOf(set: readonly MigProfile[]): string[] {
  return set.map(({ name }) => name);
}

/** Device memory of a batch, MiB; all of a smallest slice where it is not known. */
function batchMiBOf({ task: { memoryMiB } }: ExpectedFunction, { small }: CandidateSets): number {
  const [smallest] = small[0] ?? [];
  return memoryMiB > 0 || smallest === undefined ? memoryMiB : usableMiB(smallest);
}

/** Whole devices stay while a function needs more memory than the largest slice has, or several devices. */
function leftWholeFor(expected: readonly ExpectedFunction[], { large }: CandidateSets): { leftWhole?: string } {
  for (const { task } of expected) {
    if (task.gpus > 1) return { leftWhole: `'${task.function}' needs ${task.gpus} whole devices` };
    if (task.memoryMiB > usableMiB(large)) {
      return { leftWhole: `'${task.function}' needs ${task.memoryMiB} MiB, more than ${large.name} gives` };
    }
  }
  return {};
}
