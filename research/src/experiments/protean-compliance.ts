// Compliance, tail latency, utilisation and throughput in PROTEAN's primary setting (sections 6.1.1, 6.1.2, 6.1.4).
import type { BenchContext, Measurement } from '@gpuwhisk/bench/bench';
import { gains, means, playAll, type Results } from '../replay/protean/experiment.js';
import { schemes } from '../replay/protean/run.js';
import { primary, type Inputs, type Setting } from '../replay/protean/setting.js';

/** Both traces are played with each seed. */
const loads = ['worldcup98', 'nasa95'] as const;
export const patterns = ['bursts', 'spread'] as const;
/** Seeds of each pattern, as a part of all: under spread arrivals the draws differ little. */
const parts = { bursts: 1, spread: 0.2 } as const;

/** Seeds of a run. */
export function seedsOf({ options }: Pick<BenchContext, 'options'>, part = 1): number[] {
  const count = Math.max(1, Math.round(options.samples * part));
  return Array.from({ length: count }, (_, at) => options.seed * 1000 + at);
}

/** Prints compliance of each scheme, where requests were strict. */
export function sayMet(say: BenchContext['say'], title: string, results: Results): void {
  const text = [...results].map(([scheme, draws]) => {
    const met = draws.flatMap((figures) => figures['met'] ?? []);
    if (met.length === 0) return `${scheme} without strict requests`;
    const mean = met.reduce((sum, value) => sum + value, 0) / met.length;
    return `${scheme} ${(100 * mean).toFixed(2)} %`;
  });
  say(`  ${title}: ${text.join(', ')}`);
}

/**
 * `compliance.PATTERN.SCHEME.FIGURE`: means over draws of the figures of `figuresOf`. `compliance.PATTERN.gain.SCHEME`, `lost.SCHEME`: as
 * `gains` has them.
 */
export function proteanCompliance(context: BenchContext, inputs: Inputs): Measurement[] {
  const { options, say } = context;
  return patterns.flatMap((pattern) => {
    const seeds = seedsOf(context, parts[pattern]);
    const settings = loads.map((load): Setting => ({ ...primary, load, pattern }));
    const results = playAll(inputs, settings, seeds, Object.keys(schemes));
    sayMet(say, `${pattern}, ${seeds.length * settings.length} draws`, results);
    const prefix = `compliance.${pattern}`;
    return [...means(prefix, results), ...gains(prefix, results, options.seed)];
  });
}
