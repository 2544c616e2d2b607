import { granted, refused } from './share.js';
import type { ShareOut } from './share.js';

/** The whole GPU for up to `slots` tasks at a time: the hardware divides it evenly. */
export function unlimited(slots: number): ShareOut {
  return (_, { busy }) =>
    busy >= slots ? refused('it has as many as it serves', { running: busy, slots }) : granted(1);
}
