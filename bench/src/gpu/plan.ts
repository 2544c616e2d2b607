// Which processes are measured beside each other, in which order.
import { shareClasses } from '@gpuwhisk/common/gpu';
import { seededRandom, shuffled, type Random } from '@gpuwhisk/common/system/random';
import type { ShareMode } from './machine.js';
import type { Mix } from './workloads.js';

/** A process in a sample: the workload that it repeats, and its limit in percent of the SMs. */
export interface Member {
  workload: string;
  percent: number;
}

/** A set of concurrent processes. Its id states all of it, so that an interrupted run finds the samples that it has. */
export interface PlannedSample {
  id: string;
  mode: ShareMode;
  members: Member[];
}

/** How training and inference share the device: percentages under MPS, or time slices. */
export interface Sharing {
  /** Name in the metrics. */
  name: string;
  mode: ShareMode;
  training: number;
  inference: number;
}

const timeslice: Sharing = { name: 'timeslice', mode: 'timeslice', training: 100, inference: 100 };

/** All sharings; without MPS there are only time slices. */
const sharings: readonly Sharing[] = [
  { name: 'mps100', mode: 'mps', training: 100, inference: 100 },
  { name: 'mps50', mode: 'mps', training: 50, inference: 50 },
  { name: 'mps70', mode: 'mps', training: 70, inference: 30 },
  timeslice,
];

/** The sharing of a measured set of training and inference, or undefined for other sets. */
export function sharingOf(mode: ShareMode, training: number, inference: number): Sharing | undefined {
  return sharings.find((one) => one.mode === mode && one.training === training && one.inference === inference);
}

/** Numbers of inference processes beside one training, and in sets without training. */
const besideTraining = [1, 2, 3, 4];
const setSizes = [2, 3, 4, 5, 6, 7, 8];

const idOf = (mode: ShareMode, members: readonly Member[], again: number): string =>
  `${mode}/${members.map(({ workload, percent }) => `${workload}@${percent}`).join('+')}#${again}`;

/** The id of a workload alone. */
export const soloId = (mode: ShareMode, { workload, percent }: Member): string =>
  idOf(mode, [{ workload, percent }], 0);

/**
 * `count` sets, each preceded by those solo samples of its members that are not planned yet: the whole device, which all
 * are compared with, and the member's percentage. Two of three sets are training beside one to four equal inferences, over
 * all combinations with batches and sharings; the third is a set of two to eight inferences. Any prefix has all levels of
 * all factors about equally often. The same for the same seed, and a lower count gives a prefix.
 */
export function planSamples(
  mix: Mix,
  { count, seed, mps }: { count: number; seed: number; mps: boolean },
): PlannedSample[] {
  const random = seededRandom(seed);
  const trainings = endless(trainingSets(mix, mps), random);
  const inferences = endless(inferenceSets(mix, mps, random), random);
  const planned = new Set<string>();
  return Array.from({ length: count }, (_, i) => (i % 3 === 2 ? inferences() : trainings())).flatMap((sample) => {
    const solos = sample.members
      .flatMap(({ workload, percent }) => [
        { workload, percent: 100 },
        { workload, percent },
      ])
      .map((member) => ({ id: soloId(sample.mode, member), mode: sample.mode, members: [member] }))
      .filter(({ id }) => !planned.has(id) && planned.add(id));
    return [...solos, sample];
  });
}

/** Sets of one round by the levels of their factors: `sizes` has the number of levels of each. */
interface Design {
  sizes: readonly number[];
  make(levels: readonly number[], again: number): PlannedSample;
}

function trainingSets({ trainings, models }: Mix, mps: boolean): Design {
  const ways = mps ? sharings : [timeslice];
  const batches = models[0]?.length ?? 0;
  return {
    sizes: [trainings.length, models.length, batches, besideTraining.length, ways.length],
    make([training = 0, model = 0, batch = 0, beside = 0, way = 0], again) {
      const { mode, ...percents } = at(ways, way);
      const inference = { workload: at(at(models, model), batch), percent: percents.inference };
      const members = [
        { workload: at(trainings, training), percent: percents.training },
        ...Array.from({ length: at(besideTraining, beside) }, () => inference),
      ];
      return { id: idOf(mode, members, again), mode, members };
    },
  };
}

/** Members are dealt from a shuffled deck, so that none is more frequent than the others. */
function inferenceSets({ models }: Mix, mps: boolean, random: Random): Design {
  const ways = [...(mps ? (['whole', 'even'] as const) : []), 'timeslice' as const];
  const all = models.flat();
  let deck: string[] = [];
  const deal = (): string => {
    if (deck.length === 0) deck = shuffled(all, random);
    return deck.pop() as string;
  };
  return {
    sizes: [setSizes.length, ways.length],
    make([size = 0, way = 0], again) {
      const members = at(setSizes, size);
      const mode = at(ways, way) === 'timeslice' ? ('timeslice' as const) : ('mps' as const);
      const even = shareClasses.findLast((percent) => percent * members <= 100) ?? shareClasses[0];
      const percent = at(ways, way) === 'even' ? even : 100;
      const set = Array.from({ length: members }, () => ({ workload: deal(), percent }));
      return { id: idOf(mode, set, again), mode, members: set };
    },
  };
}

/** One sample after the other: all of a design in balanced order, then all of it again in another such order. */
function endless({ sizes, make }: Design, random: Random): () => PlannedSample {
  let round = -1;
  let left: number[][] = [];
  return () => {
    if (left.length === 0) {
      left = balanced(sizes, random).reverse();
      round += 1;
    }
    return make(left.pop() ?? [], round);
  };
}

const levelWeight = 8;

/**
 * All combinations of levels, in an order whose prefixes have all levels of a factor, and all pairs of levels of two
 * factors, about equally often. Greedy: the next one is, of those left, the one whose levels and pairs occurred least.
 */
export function balanced(sizes: readonly number[], random: Random): number[][] {
  let cells: number[][] = [[]];
  for (const size of sizes)
    cells = cells.flatMap((cell) => Array.from({ length: size }, (_, level) => [...cell, level]));
  const numbers = new Map<string, number>();
  const numberOf = (name: string): number => {
    const number = numbers.get(name) ?? numbers.size;
    numbers.set(name, number);
    return number;
  };
  // Levels weigh more than pairs, of which any cell has more.
  const partsOf = (cell: readonly number[]): { number: number; weight: number }[] =>
    cell.flatMap((level, i) => [
      { number: numberOf(`${i}:${level}`), weight: levelWeight * at(sizes, i) },
      ...cell.slice(0, i).map((other, j) => ({
        number: numberOf(`${j}:${other},${i}:${level}`),
        weight: at(sizes, i) * at(sizes, j),
      })),
    ]);
  const left = shuffled(cells, random).map((cell) => ({ cell, parts: partsOf(cell) }));
  const used = new Float64Array(numbers.size);
  const order: number[][] = [];
  while (left.length > 0) {
    let least = 0;
    let leastUsed = Infinity;
    left.forEach(({ parts }, i) => {
      let sum = 0;
      for (const { number } of parts) sum += used[number] ?? 0;
      if (sum < leastUsed) [least, leastUsed] = [i, sum];
    });
    const [next] = left.splice(least, 1);
    for (const { number, weight } of next?.parts ?? []) used[number] = (used[number] ?? 0) + weight;
    order.push(next?.cell ?? []);
  }
  return order;
}

function at<Item>(items: readonly Item[], index: number): Item {
  if (index >= items.length) throw new RangeError(`There are ${items.length} items, and none at ${index}.`);
  return items[index] as Item;
}
