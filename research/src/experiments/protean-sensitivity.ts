// PROTEAN under other loads, models, strictness and SLOs (section 6.2).
import type { BenchContext, Measurement } from '@gpuwhisk/bench/bench';
import { gains, means, playAll } from '../replay/protean/experiment.js';
import { schemes } from '../replay/protean/run.js';
import { languagePerS, primary, type Inputs, type Setting } from '../replay/protean/setting.js';
import { sloFactor } from '../replay/protean/metrics.js';
import { patterns, sayMet, seedsOf } from './protean-compliance.js';

/** Further settings, as changes of the primary one. */
const studies: Readonly<Record<string, Partial<Setting>>> = {
  // Figure 11.
  erratic: { load: 'twitter' },
  // Figures 12 and 13: models of very high interference.
  language: { perS: languagePerS, strictKind: 'language', restKind: 'language', rest: 'other' },
  generative: { perS: languagePerS, strictKind: 'generative', restKind: 'language', rest: 'other' },
  // Figure 15.
  tight: { sloFactor: 2 },
  // Figure 14, tables 4 and 5.
  strict0: { strictShare: 0, rest: 'high' },
  strict25: { strictShare: 0.25 },
  strict75: { strictShare: 0.75 },
  strict100: { strictShare: 1, strict: 'ResNet 50' },
};

/** Draws of each study, as a part of the seeds. */
const part = 0.1;

/** `STUDY.PATTERN.SCHEME.FIGURE`, and gains as in `compliance`. */
export function proteanSensitivity(context: BenchContext, inputs: Inputs): Measurement[] {
  const { options, say } = context;
  return Object.entries(studies).flatMap(([study, changes]) => {
    const seeds = seedsOf(context, part);
    return patterns.flatMap((pattern) => {
      const setting: Setting = { load: 'worldcup98', ...primary, ...changes, pattern };
      const results = playAll(inputs, [setting], seeds, Object.keys(schemes), setting.sloFactor ?? sloFactor);
      sayMet(say, `${study}, ${pattern}, ${seeds.length} draws`, results);
      const prefix = `${study}.${pattern}`;
      return [...means(prefix, results), ...(setting.strictShare > 0 ? gains(prefix, results, options.seed) : [])];
    });
  });
}
