import { granted } from './share.js';
import type { ShareOut } from './share.js';

/** All of a GPU on which nothing runs. */
export const whole: ShareOut = (_, { busy }) => (busy > 0 ? 'it is not free' : granted(1));
