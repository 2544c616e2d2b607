import type { PolicyRecord } from '@gpuwhisk/gpu/stages/policy-record';

/** Random of SMORE's comparison (thesis section 5.5.1): wherever there is memory, whatever runs there. */
export const random: PolicyRecord = {
  summary: 'first come, first served, on a random GPU with the memory',
  admit: 'always',
  order: 'fifo',
  share: 'unlimited',
  place: 'random',
  // As many as an MPS server has clients: memory alone decides.
  settings: { slots: 48 },
  needsNoProfiles: true,
};
