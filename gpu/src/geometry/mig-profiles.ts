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
} as const satisfies Readonly<Record<string, readonly MigProfile[]>>;

/** The profiles of a type of device; none: it cannot be cut, or is not known. */
export function profilesOf(type: string): readonly MigProfile[] {
  return (migProfiles as Readonly<Record<string, readonly MigProfile[]>>)[type] ?? [];
}

/** The first memory slot of each of `profiles` on an empty device of a type, in their order; undefined: they do not fit. */
export function placedSlots(type: string, profiles: readonly string[]): number[] | undefined {
  const known = profilesOf(type);
  const wanted = profiles.map((name) => known.find((one) => one.name === name));
  const compute = profiles.reduce((sum, name) => sum + computeSlicesOf(name), 0);
  if (compute > computeSlices || !wanted.every((one) => one !== undefined)) return undefined;
  // The largest first: the small ones fit into what they leave.
  const order = [...wanted.entries()].sort(([, one], [, other]) => other.slots - one.slots);
  const slots = new Array<number>(wanted.length);
  const place = (turn: number, taken: number): boolean => {
    const next = order[turn];
    if (next === undefined) return true;
    const [at, { starts, slots: size }] = next;
    return starts.some((start) => {
      const mask = ((1 << size) - 1) << start;
      slots[at] = start;
      return start + size <= memorySlots && (taken & mask) === 0 && place(turn + 1, taken | mask);
    });
  };
  return place(0, 0) ? slots : undefined;
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

/** What of a device's slices is to go and to come; slices of profiles that are wanted stay. */
export interface SliceChanges {
  /** Ids of slices. */
  remove: readonly string[];
  /** Profiles. */
  add: readonly string[];
}

/** The changes from `slices` to `profiles`. */
export function sliceChanges(
  slices: readonly { uuid: string; profile: string }[],
  profiles: readonly string[],
): SliceChanges {
  const add = [...profiles];
  const remove: string[] = [];
  for (const { uuid, profile: name } of slices) {
    const at = add.indexOf(name);
    if (at < 0) remove.push(uuid);
    else add.splice(at, 1);
  }
  return { remove, add };
}
