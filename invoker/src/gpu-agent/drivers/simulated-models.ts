import { migProfiles } from '@gpuwhisk/gpu/geometry/mig-profiles';
import type { MigProfile } from '@gpuwhisk/gpu/geometry/mig-profiles';

/** What is known of a model ahead. */
export interface SimulatedModel {
  name: string;
  smCount: number;
  memoryMiB: number;
  profiles: readonly MigProfile[];
  /** Whether NVML has activity of SMs and memory (GPM): from Hopper on. */
  gpm: boolean;
}

/** The models of the in-memory driver. The stand-in has a larger table of its own; the contract suite compares them. */
export const simulatedModels = {
  rtx3090: {
    name: 'NVIDIA GeForce RTX 3090 (simulated)',
    smCount: 82,
    memoryMiB: 24 * 1024,
    profiles: [],
    gpm: false,
  },
  'a100-40': {
    name: 'NVIDIA A100-SXM4-40GB (simulated)',
    smCount: 108,
    memoryMiB: 40 * 1024,
    profiles: migProfiles['a100-40'],
    gpm: false,
  },
  h100: {
    name: 'NVIDIA H100 80GB HBM3 (simulated)',
    smCount: 132,
    memoryMiB: 80 * 1024,
    profiles: migProfiles.h100,
    gpm: true,
  },
} satisfies Record<string, SimulatedModel>;

export type SimulatedType = keyof typeof simulatedModels;
