import type { SliceProfile } from './gpu-driver.js';

/** What is known of a model ahead. MIG profiles are NVIDIA's (MIG user guide, supported profiles). */
export interface SimulatedModel {
  name: string;
  smCount: number;
  memoryMiB: number;
  profiles: Omit<SliceProfile, 'remaining'>[];
}

const anywhere = [0, 1, 2, 3, 4, 5, 6];

const profile = (
  name: string,
  slots: number,
  smCount: number,
  memoryMiB: number,
  starts: number[],
): Omit<SliceProfile, 'remaining'> => ({ name, slots, smCount, memoryMiB, starts });

/** The models of the in-memory driver. The stand-in has a larger table of its own; the contract suite compares them. */
export const simulatedModels = {
  rtx3090: { name: 'NVIDIA GeForce RTX 3090 (simulated)', smCount: 82, memoryMiB: 24 * 1024, profiles: [] },
  'a100-40': {
    name: 'NVIDIA A100-SXM4-40GB (simulated)',
    smCount: 108,
    memoryMiB: 40 * 1024,
    profiles: [
      profile('1g.5gb', 1, 14, 4864, anywhere),
      profile('1g.10gb', 2, 14, 9830, [0, 2, 4, 6]),
      profile('2g.10gb', 2, 28, 9830, [0, 2, 4]),
      profile('3g.20gb', 4, 42, 19_968, [0, 4]),
      profile('4g.20gb', 4, 56, 19_968, [0]),
      profile('7g.40gb', 8, 98, 40_192, [0]),
    ],
  },
  h100: {
    name: 'NVIDIA H100 80GB HBM3 (simulated)',
    smCount: 132,
    memoryMiB: 80 * 1024,
    profiles: [
      profile('1g.10gb', 1, 16, 9984, anywhere),
      profile('1g.20gb', 2, 26, 19_968, [0, 2, 4, 6]),
      profile('2g.20gb', 2, 32, 19_968, [0, 2, 4]),
      profile('3g.40gb', 4, 60, 40_448, [0, 4]),
      profile('4g.40gb', 4, 64, 40_448, [0]),
      profile('7g.80gb', 8, 132, 80_896, [0]),
    ],
  },
} satisfies Record<string, SimulatedModel>;

export type SimulatedType = keyof typeof simulatedModels;
