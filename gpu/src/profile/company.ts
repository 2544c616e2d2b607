import type { ObservedRun } from '../view/decision.js';
import type { CoLocated, WorkloadFeatures } from '../predict/slowdown-predictor.js';
import { jobId } from '../share/quota-key.js';

/** A neighbour that was there all the time: one run, or one after the other of the same function at the same share. */
export type Neighbour = Pick<ObservedRun['beside'][number], 'task' | 'share'>;

/** Part of a run in which neighbours may be missing, or others be there, all of them together. */
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
  let off = 0;
  for (const { task, share, parts } of kinds.values()) {
    const count = Math.round(parts);
    off += Math.abs(parts - count);
    if (off > tolerance) return undefined;
    for (let one = 0; one < count; one += 1) company.push({ task, share });
  }
  return company;
}

/**
 * Those who were beside a run as if each had been there all the time, using as much less of the GPU as it was there for
 * less: what they used on average. `unseen` is assumed of what nobody has seen run.
 */
export function averageCompany({ beside }: Pick<ObservedRun, 'beside'>, unseen: WorkloadFeatures): CoLocated[] {
  return beside.flatMap(({ task, share, part }) => {
    const { smUtil, dramUtil, l2Util } = task.features ?? unseen;
    // One entry may be of several at once.
    const count = Math.ceil(part);
    const use = (smUtil > share ? share / smUtil : 1) * (part / count);
    const features = {
      smUtil: smUtil * use,
      ...(dramUtil !== undefined && { dramUtil: dramUtil * use }),
      ...(l2Util !== undefined && { l2Util: l2Util * use }),
    };
    return Array.from({ length: count }, () => ({ features, share: 1 }));
  });
}
