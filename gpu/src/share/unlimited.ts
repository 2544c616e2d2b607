import { granted } from './share.js';
import type { ShareOut } from './share.js';

/** Nobody is held to a part, and the hardware gives all that ask the same; `slots` tasks at a time. */
export function unlimited(slots: number): ShareOut {
  return (_, { busy }) => (busy >= slots ? 'it has as many as it serves' : granted(1));
}
