// Cold starts with and without delayed termination (PROTEAN, section 4.2).
import { proteanScale, proteanScaleDefaults } from '@gpuwhisk/gpu/scale/protean';
import type { BenchContext, Measurement } from '../bench.js';
import { coldStarts } from '../replay/protean/scaling.js';
import { draw, primary, type Inputs, type Setting } from '../replay/protean/setting.js';
import { meanOf } from '../statistics.js';
import { seedsOf } from './protean-compliance.js';

/** How long a surplus of instances lasts before one goes, s: the paper's 10 minutes, and at once. */
const variants = { delayed: proteanScaleDefaults.surplusS, atOnce: 0 } as const;
const part = 0.2;

/**
 * `coldStarts.LOAD.PATTERN.VARIANT`: instances that were started for batches or by the stage in 240 s of a load;
 * `coldStartsSaved.LOAD.PATTERN`: by how much delayed termination has fewer, fraction.
 */
export function proteanScaling(context: BenchContext, inputs: Inputs): Measurement[] {
  const seeds = seedsOf(context, part);
  return (['worldcup98', 'twitter'] as const).flatMap((load) =>
    (['bursts', 'spread'] as const).flatMap((pattern) => {
      const setting: Setting = { ...primary, load, pattern };
      const counts = Object.entries(variants).map(([variant, surplusS]) => {
        const values = seeds.map((seed) =>
          coldStarts(draw(inputs, setting, seed).batches, proteanScale({ ...proteanScaleDefaults, surplusS })),
        );
        return { name: `coldStarts.${load}.${pattern}.${variant}`, value: meanOf(values) };
      });
      const [delayed, atOnce] = counts.map(({ value }) => value);
      const saved = 1 - (delayed ?? NaN) / (atOnce ?? NaN);
      context.say(`  cold starts, ${load}, ${pattern}: ${counts.map(({ value }) => value.toFixed(0)).join(' and ')}`);
      return [...counts, { name: `coldStartsSaved.${load}.${pattern}`, value: saved }];
    }),
  );
}
