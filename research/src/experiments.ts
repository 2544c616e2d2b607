import type { Bench } from '@gpuwhisk/bench/bench';
import { contention } from './experiments/contention.js';
import { dilu } from './experiments/dilu.js';
import { faashare } from './experiments/faashare.js';
import { predictor } from './experiments/predictor.js';
import { protean } from './experiments/protean.js';
import { quota } from './experiments/quota.js';
import { smore } from './experiments/smore.js';
import { verdicts } from './experiments/verdicts.js';
import { world } from './experiments/world.js';

/** Every experiment by its name. */
export const experiments: Readonly<Record<string, Bench>> = {
  ...{ faashare, smore, dilu, protean, predictor, quota },
  ...{ world, contention, verdicts },
};
