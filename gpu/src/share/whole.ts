import { granted, refused } from './share.js';
import type { ShareOut } from './share.js';

/** All of a GPU on which nothing runs. */
export const whole: ShareOut = (_, { busy }) => (busy > 0 ? refused('it is not free', { running: busy }) : granted(1));
