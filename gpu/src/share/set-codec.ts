// The stored form of trials: a set that was tried, and the whole state of the trials in a saved view.
import { z } from 'zod';
import type { SavedTrials, TriedSet } from './set-trials.js';

const part = z.number().min(0);
const features = z.object({ smUtil: part, dramUtil: part.optional(), l2Util: part.optional() });
const ratios = z.record(z.string(), z.array(part).max(64));

const triedSet = z
  .object({
    gpuType: z.string(),
    mode: z.enum(['exclusive', 'timeslice', 'mps', 'mig']),
    members: z.array(z.string()).min(2).max(8),
    functions: z.array(z.string()).min(2).max(8),
    features: z.array(features).optional(),
    ratios,
    runs: z.int().min(0),
    state: z.enum(['trying', 'stays', 'split']),
    splitAt: z.number().optional(),
    driverMajor: z.number(),
  })
  .refine((set) => set.members.every((id) => set.ratios[id] !== undefined));

/** Reads a stored set. Throws RangeError. */
export function readTriedSet(value: unknown): TriedSet {
  const read = triedSet.safeParse(value);
  if (!read.success) throw new RangeError(`this is no set of trials: ${z.prettifyError(read.error)}`);
  return read.data as TriedSet;
}

/** The state of trials in a saved view. */
export const savedTrials: z.ZodType<SavedTrials> = z.object({
  sets: z.array(triedSet),
  alone: z.array(z.tuple([z.string(), z.object({ timesMs: z.array(part), skipped: part, missing: part })])),
  budgets: z.array(
    z.tuple([
      z.string(),
      z.array(z.object({ span: z.number(), busyMs: part, lostMs: z.record(z.string(), z.number()) })),
    ]),
  ),
  kept: z.array(z.tuple([z.string(), z.object({ id: z.string(), until: z.number() })])),
  held: part,
  runs: part,
}) as z.ZodType<SavedTrials>;
