// What functions lose beside which others, for those who look at GPUs.
import type { GpuKind } from '@gpuwhisk/common/gpu';
import { kindName } from '@gpuwhisk/common/gpu';
import { standingOfSet } from '@gpuwhisk/gpu/share/set-trials';
import type { SetStanding, TriedSet } from '@gpuwhisk/gpu/share/set-trials';

/** A set of functions that was tried on a kind of GPU, as one of its members sees it. */
export interface SetBeside extends Pick<SetStanding, 'state' | 'runs' | 'until'> {
  /** The other members, `/namespace/action`. */
  others: readonly string[];
  /** Σ(alone / together); absent: too few runs. */
  gain?: number;
  /** How many times longer than alone the member takes; absent: too few runs. */
  slowdown?: number;
}

/** Sets that are told of one function on one kind of GPU, at most: the last ones that changed. */
const mostTold = 3;

/** The sets of functions by kind of GPU and function. */
export class TriedSets {
  private readonly byFunction = new Map<string, SetBeside[]>();

  /** `sets`: the one that was changed last at the end. */
  constructor(sets: readonly TriedSet[]) {
    for (const set of sets.toReversed()) {
      const { state, runs, until, gain, slowdowns } = standingOfSet(set);
      for (const [at, name] of set.functions.entries()) {
        // Two instances of one function see the same.
        if (set.functions.indexOf(name) !== at) continue;
        const slowdown = slowdowns?.[at];
        const key = keyOf(set, name);
        const told = this.byFunction.get(key) ?? [];
        told.push({
          ...{ state, runs, others: set.functions.filter((_, other) => other !== at) },
          ...(until !== undefined && { until }),
          ...(gain !== undefined && { gain: gain.mean }),
          ...(slowdown !== undefined && { slowdown }),
        });
        this.byFunction.set(key, told);
      }
    }
  }

  /** The last sets of a function on a kind of GPU whose other members are all `there`, by name; at most three. */
  of(gpu: GpuKind, name: string, there: ReadonlySet<string>): readonly SetBeside[] {
    const told = this.byFunction.get(keyOf(gpu, name)) ?? [];
    return told.filter(({ others }) => others.every((one) => there.has(one))).slice(0, mostTold);
  }
}

/** A set in words; `nameOf`: how its other members are named. */
export function textOfSet(
  { state, runs, others, gain, slowdown }: SetBeside,
  nameOf: (name: string) => string,
): string {
  const beside = others.map(nameOf).join(' and ');
  if (state === 'trying') return `trying beside ${beside} (${runs} run${runs === 1 ? '' : 's'} measured)`;
  if (gain === undefined) return `${state} beside ${beside}`;
  const own = slowdown === undefined ? '' : `, takes ${slowdown.toFixed(2)} times as long`;
  if (state === 'stays') return `stays beside ${beside}: ${gain.toFixed(2)} times alone in turns${own}`;
  const percent = Math.round(Math.abs(1 - gain) * 100);
  const verdict = gain < 1 ? `lost ${percent} %` : `gained ${percent} % only`;
  return `split from ${beside}: ${verdict} against turns${own}`;
}

const keyOf = (gpu: GpuKind, name: string): string => `${kindName(gpu)} ${name}`;
