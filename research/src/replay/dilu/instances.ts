// Instances that come and go: the sets that are packed.
import { randomFraction, type Random } from '@gpuwhisk/common/system/random';

/** Kinds of instances, as Dilu has them (section 5.1). */
export type InstanceKind = 'training' | 'inference' | 'llm';

/** An instance: shares in thousandths of a device's SMs. */
export interface PackedInstance {
  id: string;
  /** Its function; an instance of the sets at hand is the only one of its own. */
  function: string;
  kind: InstanceKind;
  /** Devices that it needs, of one node. */
  gpus: number;
  request: number;
  limit: number;
  /** On each device. */
  memoryMiB: number;
}

/** The start or the end of an instance, s after the first event. */
export interface PackingEvent {
  atS: number;
  isStart: boolean;
  instance: PackedInstance;
}

/** Ranges from which an instance's values are drawn evenly: hundredths of the SMs, GiB. */
interface KindRanges {
  request: readonly [number, number];
  limit: readonly [number, number];
  gib: readonly [number, number];
  gpus: readonly number[];
}

/** As in the sets at hand, by their smallest and greatest values. */
const ranges: Readonly<Record<InstanceKind, KindRanges>> = {
  training: { request: [40, 80], limit: [60, 100], gib: [25, 40], gpus: [2, 4] },
  llm: { request: [40, 60], limit: [60, 80], gib: [20, 30], gpus: [1] },
  inference: { request: [20, 40], limit: [40, 60], gib: [3, 10], gpus: [1] },
};

/** A limit is above its request by at least so many hundredths. */
const leastAbove = 20;

/** Training, language models and other inference come as 2 : 2 : 6 (section 5.1). */
const tenths: readonly InstanceKind[] = [
  ...(['training', 'training', 'llm', 'llm'] as const),
  ...(Array.from({ length: 6 }, () => 'inference') as 'inference'[]),
];

/** Of ten instances so many end, after so many seconds; the others stay. As in the sets at hand. */
const ends = {
  training: { part: 0.5, afterS: [600, 900] },
  llm: { part: 0.75, afterS: [60, 180] },
  inference: { part: 0.75, afterS: [60, 180] },
} as const satisfies Record<InstanceKind, { part: number; afterS: readonly [number, number] }>;

/** Instances of one function, for sets whose functions have several: an inference function, or one of training. */
const perFunction = 8;

function between(random: Random, [low, high]: readonly [number, number]): number {
  return low + Math.floor(randomFraction(random) * (high - low + 1));
}

/**
 * `count` instances, one a second. `recurs`: they are of functions that have several instances with the same demand each;
 * else each is of a function of its own.
 */
export function drawnInstances(count: number, random: Random, recurs: boolean): PackingEvent[] {
  const functions = new Map<InstanceKind, Omit<PackedInstance, 'id'>[]>();
  const events: PackingEvent[] = [];
  for (let at = 0; at < count; at += 1) {
    // eslint-disable-next-line @typescript-eslint/no-non-null-assertion -- the index is below ten
    const kind = tenths[Math.floor(randomFraction(random) * tenths.length)]!;
    const known = functions.get(kind) ?? [];
    functions.set(kind, known);
    const wanted = Math.max(1, Math.round(count / 10 / perFunction));
    const drawn = recurs && known.length >= wanted ? known[at % known.length] : undefined;
    const of = drawn ?? drawnFunction(kind, `${kind}-${at}`, random);
    if (drawn === undefined) known.push(of);
    const instance = { ...of, id: `${of.function}/${at}` };
    events.push({ atS: at, isStart: true, instance });
    const { part, afterS } = ends[kind];
    if (randomFraction(random) < part) {
      events.push({ atS: at + between(random, afterS), isStart: false, instance });
    }
  }
  return inTime(events);
}

function drawnFunction(kind: InstanceKind, name: string, random: Random): Omit<PackedInstance, 'id'> {
  const { request: requests, limit: limits, gib, gpus } = ranges[kind];
  const request = between(random, requests);
  const limit = Math.max(request + leastAbove, between(random, limits));
  return {
    function: name,
    kind,
    // eslint-disable-next-line @typescript-eslint/no-non-null-assertion -- the index is below the length of a list with items
    gpus: gpus[Math.floor(randomFraction(random) * gpus.length)]!,
    request: request * 10,
    limit: limit * 10,
    memoryMiB: between(random, gib) * 1024,
  };
}

/** Events by time; of one instant, ends go before starts. */
export function inTime(events: readonly PackingEvent[]): PackingEvent[] {
  return events.toSorted((one, other) => one.atS - other.atS || Number(one.isStart) - Number(other.isStart));
}
