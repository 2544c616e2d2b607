/** A kind of slice. */
export interface MigProfile {
  /** `3g.20gb`. */
  name: string;
  /** Memory slots that it takes, and the first of them where it may be. */
  slots: number;
  starts: readonly number[];
  smCount: number;
  memoryMiB: number;
}

/** Memory slots of a device that can be cut. */
export const memorySlots = 8;
/** Its compute slices. */
export const computeSlices = 7;

/** How many compute slices a profile takes: the number before `g`. */
export const computeSlicesOf = (profile: string): number => Number.parseInt(profile, 10);

const anywhere = [0, 1, 2, 3, 4, 5, 6];
/** By the compute slices and memory slots of a profile (NVIDIA's MIG user guide, which has them the same for all these). */
const startsOf: Readonly<Record<string, readonly number[]>> = {
  '1 1': anywhere,
  '1 2': [0, 2, 4, 6],
  '2 2': [0, 2, 4],
  '3 4': [0, 4],
  '4 4': [0],
  '7 8': [0],
};

const profile = (name: string, slots: number, smCount: number, memoryMiB: number): MigProfile => ({
  name,
  slots,
  smCount,
  memoryMiB,
  // eslint-disable-next-line @typescript-eslint/no-non-null-assertion -- `startsOf` has every size that a profile below has
  starts: startsOf[`${computeSlicesOf(name)} ${slots}`]!,
});

/** The profiles of the devices that are known ahead, by type (NVIDIA's MIG user guide, supported profiles). */
export const migProfiles = {
  'a100-40': [
    profile('1g.5gb', 1, 14, 4864),
    profile('1g.10gb', 2, 14, 9830),
    profile('2g.10gb', 2, 28, 9830),
    profile('3g.20gb', 4, 42, 19_968),
    profile('4g.20gb', 4, 56, 19_968),
    profile('7g.40gb', 8, 98, 40_192),
  ],
  'a100-80': [
    profile('1g.10gb', 1, 14, 9728),
    profile('1g.20gb', 2, 14, 19_968),
    profile('2g.20gb', 2, 28, 19_968),
    profile('3g.40gb', 4, 42, 40_192),
    profile('4g.40gb', 4, 56, 40_192),
    profile('7g.80gb', 8, 98, 80_896),
  ],
  h100: [
    profile('1g.10gb', 1, 16, 9984),
    profile('1g.20gb', 2, 26, 19_968),
    profile('2g.20gb', 2, 32, 19_968),
    profile('3g.40gb', 4, 60, 40_448),
    profile('4g.40gb', 4, 64, 40_448),
    profile('7g.80gb', 8, 132, 80_896),
  ],
  h200: [
    profile('1g.18gb', 1, 16, 16_384),
    profile('1g.35gb', 2, 26, 33_024),
    profile('2g.35gb', 2, 32, 33_024),
    profile('3g.71gb', 4, 60, 71_168),
    profile('4g.71gb', 4, 64, 71_168),
    profile('7g.141gb', 8, 132, 142_336),
  ],
  // The guide gives fractions only. SMs and memory of 1g and 2g: what nvidia-smi prints (NVIDIA/mig-parted, pull request
  // 187); the larger ones are multiples of these, and so lower bounds.
  b200: [
    profile('1g.23gb', 1, 18, 20_992),
    profile('1g.45gb', 2, 30, 45_312),
    profile('2g.45gb', 2, 36, 45_312),
    profile('3g.90gb', 4, 54, 90_624),
    profile('4g.90gb', 4, 72, 90_624),
    profile('7g.180gb', 8, 126, 181_248),
  ],
} as const satisfies Readonly<Record<string, readonly MigProfile[]>>;

/** The profiles of a type of device; none: it cannot be cut, or is not known. */
export function profilesOf(type: string): readonly MigProfile[] {
  return (migProfiles as Readonly<Record<string, readonly MigProfile[]>>)[type] ?? [];
}

/** Slots and compute slices of a device that are taken already. */
interface Taken {
  /** A bit for each memory slot. */
  slots: number;
  compute: number;
}

const nothing: Taken = { slots: 0, compute: 0 };

const maskOf = (start: number, slots: number): number => ((1 << slots) - 1) << start;

/**
 * The first memory slot of each of `profiles` on a device of a type, in their order, beside what is taken; undefined: they do
 * not fit. A profile with media extensions (`1g.5gb+me`) is placed like the one without, and a device has one at most.
 */
export function placedSlots(type: string, profiles: readonly string[], taken = nothing): number[] | undefined {
  const known = profilesOf(type);
  const wanted = profiles.map((name) => known.find((one) => one.name === baseOf(name)));
  const compute = profiles.reduce((sum, name) => sum + computeSlicesOf(name), taken.compute);
  const extended = profiles.filter((name) => name !== baseOf(name)).length;
  if (compute > computeSlices || extended > 1 || !wanted.every((one) => one !== undefined)) return undefined;
  // The largest first: the small ones fit into what they leave.
  const order = [...wanted.entries()].sort(([, one], [, other]) => other.slots - one.slots);
  const slots = new Array<number>(wanted.length);
  const place = (turn: number, full: number): boolean => {
    const next = order[turn];
    if (next === undefined) return true;
    const [at, { starts, slots: size }] = next;
    return starts.some((start) => {
      const mask = maskOf(start, size);
      slots[at] = start;
      return start + size <= memorySlots && (full & mask) === 0 && place(turn + 1, full | mask);
    });
  };
  return place(0, taken.slots) ? slots : undefined;
}

function baseOf(profile: string): string {
  return profile.replace(/\+me$/, '');
}

/**
 * Why a device of `type` cannot be cut into `profiles`; undefined if it can, or if its type is not in the table, so that only
 * its driver can tell.
 */
export function geometryFault(type: string, profiles: readonly string[]): string | undefined {
  const known = profilesOf(type).map(({ name }) => name);
  if (known.length === 0 || profiles.length === 0) return undefined;
  const strange = profiles.find((name) => !known.includes(baseOf(name)));
  if (strange !== undefined) return `'${strange}' is no profile of type ${type}; there are ${known.join(', ')}`;
  if (placedSlots(type, profiles) !== undefined) return undefined;
  return `${profiles.join(', ')} do not fit together on type ${type}: it has ${computeSlices} compute slices and ${memorySlots} memory slots`;
}

const geometries = new Map<string, readonly (readonly string[])[]>();

/** Every set of profiles that fits on a device of a type, the largest profile of each first; worked out once. */
export function geometriesOf(type: string): readonly (readonly string[])[] {
  let known = geometries.get(type);
  if (known === undefined) {
    const names = [...profilesOf(type)]
      .sort((one, other) => other.smCount - one.smCount || other.memoryMiB - one.memoryMiB)
      .map(({ name }) => name);
    const found: string[][] = [];
    const extend = (chosen: readonly string[], from: number): void => {
      for (const [passed, name] of names.slice(from).entries()) {
        const more = [...chosen, name];
        if (placedSlots(type, more) === undefined) continue;
        found.push(more);
        extend(more, from + passed);
      }
    };
    extend([], 0);
    known = found;
    geometries.set(type, known);
  }
  return known;
}

/** The slices of a device to remove and to add; slices of profiles that are wanted stay. */
export interface SliceChanges {
  /** Ids of slices. */
  remove: readonly string[];
  /** Profiles. */
  add: readonly string[];
  /** First memory slot of each of `add`; absent: the driver chooses. */
  starts?: readonly number[];
}

/** A slice that a device has; `startSlot`: −1 or absent where it is not known. */
export interface PresentSlice {
  uuid: string;
  profile: string;
  startSlot?: number;
}

/**
 * The changes from `slices` to `profiles`. As many slices of wanted profiles stay as leave the others a place; where `type` or
 * the position of a slice is not known, all do.
 */
export function sliceChanges(slices: readonly PresentSlice[], profiles: readonly string[], type = ''): SliceChanges {
  const isPlaced = profilesOf(type).length > 0 && slices.every(({ startSlot = -1 }) => startSlot >= 0);
  return (isPlaced ? placedChanges(slices, profiles, type) : undefined) ?? changesWith(slices, profiles);
}

function changesWith(slices: readonly PresentSlice[], profiles: readonly string[]): SliceChanges {
  const add = [...profiles];
  const remove: string[] = [];
  for (const { uuid, profile: name } of slices) {
    const at = add.indexOf(name);
    if (at < 0) remove.push(uuid);
    else add.splice(at, 1);
  }
  return { remove, add };
}

/** The changes that keep most slices and have a place for all others; undefined if there are none. */
function placedChanges(
  slices: readonly PresentSlice[],
  profiles: readonly string[],
  type: string,
): SliceChanges | undefined {
  let best: { changes: SliceChanges; kept: number } | undefined;
  for (let subset = 0; subset < 1 << slices.length; subset += 1) {
    const kept = slices.filter((_, at) => (subset & (1 << at)) !== 0);
    if (best !== undefined && kept.length <= best.kept) continue;
    const { remove, add } = changesWith(kept, profiles);
    const starts = remove.length > 0 ? undefined : placedSlots(type, add, takenBy(kept, type));
    if (starts === undefined) continue;
    const gone = slices.filter((one) => !kept.includes(one)).map(({ uuid }) => uuid);
    best = { changes: { remove: gone, add, starts }, kept: kept.length };
  }
  return best?.changes;
}

function takenBy(slices: readonly PresentSlice[], type: string): Taken {
  return slices.reduce<Taken>((taken, { profile: name, startSlot = 0 }) => {
    const { slots = 0 } = profilesOf(type).find((one) => one.name === baseOf(name)) ?? {};
    return { slots: taken.slots | maskOf(startSlot, slots), compute: taken.compute + computeSlicesOf(name) };
  }, nothing);
}
