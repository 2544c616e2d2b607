// MIG slices of an A100 in SMORE's experiments (thesis section 5.6.2): each a small GPU with its part of what was measured.
import type { GpuKind } from '@gpuwhisk/common/gpu';
import { gpuMemoryBound } from '@gpuwhisk/common/gpu';
import { computeSlices, computeSlicesOf, memorySlots, migProfiles } from '@gpuwhisk/gpu/stages/geometry/mig-profiles';
import type { GpuTruth, TruthClient } from '@gpuwhisk/gpu/simulate/replay';
import { stretchAt, stretchTable } from '@gpuwhisk/bench/replay/model/gpu-model';
import type { CatalogueEntry } from '@gpuwhisk/bench/replay/workloads/catalogue';
import type { ExperimentPlace } from './run.js';
import { coLocationTruth, type CoLocationParameters } from './truth.js';

const device = 'a100-40';

/** The thesis's geometries, with the training job of each slice: the one that uses most of the GPU on the largest. */
export const geometries: Readonly<Record<string, readonly (readonly [profile: string, training: string])[]>> = {
  '4g-3g': [
    ['4g.20gb', 'MobileNetV2-CIFAR-10-128-amp'],
    ['3g.20gb', 'MobileNetV2-CIFAR-10-32-amp'],
  ],
  '3g-2g-2g': [
    ['3g.20gb', 'MobileNetV2-CIFAR-10-128-amp'],
    ['2g.10gb', 'MobileNetV2-CIFAR-10-32-amp'],
    ['2g.10gb', 'NeuMF-MovieLens-64'],
  ],
  '4g-2g-1g': [
    ['4g.20gb', 'MobileNetV2-CIFAR-10-128-amp'],
    ['2g.10gb', 'MobileNetV2-CIFAR-10-32-amp'],
    ['1g.5gb', 'NeuMF-MovieLens-64'],
  ],
};

const profiles = [...new Set(Object.values(geometries).flatMap((slices) => slices.map(([profile]) => profile)))];

/** The slices as kinds of GPU. */
export const sliceKinds: readonly GpuKind[] = profiles.map((profile) => ({
  gpuType: `${device}:${profile}`,
  mode: 'mig',
}));

/** The part of the SMs that a slice has. */
const partOf = (profile: string): number => computeSlicesOf(profile) / computeSlices;

/** The slices of a geometry, which weigh as much as they have SMs. */
export function slicesOf(geometry: string): ExperimentPlace[] {
  return (geometries[geometry] ?? []).map(([profile, training], at) => {
    const { memoryMiB } = profileOf(profile);
    const place = {
      id: `slice${at}`,
      node: 'node0',
      type: `${device}:${profile}`,
      mode: 'mig' as const,
      memoryMiB: Math.floor(memoryMiB * gpuMemoryBound),
      device: 'gpu0',
      profile,
    };
    return { place, training, weight: partOf(profile) };
  });
}

function profileOf(profile: string): (typeof migProfiles)[typeof device][number] {
  const found = migProfiles[device].find(({ name }) => name === profile);
  if (found === undefined) throw new RangeError(`there is no profile '${profile}'`);
  return found;
}

/** A workload as it is on a slice alone: it fills more of that, and its traffic is more of the slice's. */
function onSlice(entry: CatalogueEntry, profile: string): CatalogueEntry {
  const { model } = entry;
  const part = partOf(profile);
  const memoryPart = profileOf(profile).slots / memorySlots;
  return {
    ...entry,
    model: {
      ...model,
      stretch: stretchTable((share) => stretchAt(model, share * part)),
      saturation: Math.min(1, model.saturation / part),
      l2Util: Math.min(1, model.l2Util / memoryPart),
      dramUtil: Math.min(1, model.dramUtil / memoryPart),
      // The cap on power is of the whole device.
      powerW: 0,
    },
  };
}

/**
 * The truth on slices. Slowdowns of functions relate to their time alone on the whole device, those of training jobs to
 * theirs alone on the slice. Shares have no effect on a slice.
 */
export function sliceTruth(
  parameters: CoLocationParameters,
  entries: ReadonlyMap<string, CatalogueEntry>,
  seed: number,
): GpuTruth {
  const bySlice = new Map(
    profiles.map((profile) => {
      const scaled = new Map(Array.from(entries, ([name, entry]) => [name, onSlice(entry, profile)] as const));
      return [`${device}:${profile}`, { truth: coLocationTruth(parameters, scaled, seed), part: partOf(profile) }];
    }),
  );
  const sliceOf = (gpu: GpuKind | undefined): { truth: GpuTruth; part: number } => {
    const slice = bySlice.get(gpu?.gpuType ?? '');
    if (slice === undefined) throw new RangeError(`there is no slice '${gpu?.gpuType}'`);
    return slice;
  };
  const unbounded = (clients: readonly TruthClient[]): TruthClient[] =>
    clients.map(({ workload }) => ({ workload, share: 1 }));
  return {
    noise: parameters.functions.noise,
    used: (clients, gpu) => sliceOf(gpu).truth.used(unbounded(clients)),
    slowdowns(clients, gpu) {
      const { truth, part } = sliceOf(gpu);
      const slowdowns = truth.slowdowns(unbounded(clients));
      for (const [at, { workload }] of clients.entries()) {
        const entry = entries.get(workload);
        if (entry?.class === 'inference') slowdowns[at] = (slowdowns[at] as number) * stretchAt(entry.model, part);
      }
      return slowdowns;
    },
  };
}
