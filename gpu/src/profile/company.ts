import type { ObservedRun } from '../policies/policy.js';
import { jobId } from '../quota/quota-key.js';

/** A neighbour that was there all the time: one run, or one after the other of the same function at the same share. */
export type Neighbour = Pick<ObservedRun['beside'][number], 'task' | 'share'>;

/** Part of a run in which a neighbour may be missing, or somebody else be there. */
const tolerance = 0.1;

/** Those who were beside a run from its beginning to its end; undefined where that changed meanwhile. */
export function steadyCompany({ beside }: Pick<ObservedRun, 'beside'>): Neighbour[] | undefined {
  const kinds = new Map<string, Neighbour & { parts: number }>();
  for (const { task, share, part } of beside) {
    const kind = `${jobId(task)} ${share}`;
    const known = kinds.get(kind);
    if (known === undefined) kinds.set(kind, { task, share, parts: part });
    else known.parts += part;
  }
  const company: Neighbour[] = [];
  for (const { task, share, parts } of kinds.values()) {
    const count = Math.round(parts);
    if (Math.abs(parts - count) > tolerance) return undefined;
    for (let one = 0; one < count; one += 1) company.push({ task, share });
  }
  return company;
}
