// Requests, instances and late requests over the bursty trace (Dilu, figure 15).
import { seededRandom } from '@gpuwhisk/common/system/random';
import type { BenchContext, Measurement } from '../bench.js';
import { serve } from '../replay/dilu/co-scaling.js';
import { poissonLoad, readDiluTrace } from '../replay/dilu/loads.js';
import { readServedModels, type ServedModel } from '../replay/dilu/served-models.js';
import { coldMs, deployments } from './dilu-coscaling.js';

/** The function and the multiplier of the trace; the paper's figure names neither. */
const shown = { model: 'roberta_large', times: 25 } as const;
const compared = ['dilu', 'infless', 'fastGshare'] as const;
/** Seconds that each value of a series stands for. */
const stepS = 20;

/**
 * Series over the bursty trace, one value for each 20 s: `trace.requests.N` (of a second), `trace.WAY.instances.N`, and
 * `trace.WAY.late.N`, the part of the requests that were later than their SLO. One seed.
 */
export async function diluTrace({ options, say }: BenchContext): Promise<Measurement[]> {
  const [model] = (await readServedModels([shown.model])) as [ServedModel];
  const load = poissonLoad(await readDiluTrace('bursty'), shown.times, seededRandom(options.seed * 1000));
  const measurements: Measurement[] = [];
  for (const [at, name] of compared.entries()) {
    const deployed = deployments[name]?.(model);
    if (deployed === undefined) throw new Error(`there is no way of scaling '${name}'`);
    const { bySecond, coldStarts, violations, requests } = serve(model, load, deployed, coldMs);
    say(`  ${name}: ${coldStarts} cold starts, ${violations} of ${requests} requests late`);
    const [came, late, instances] = [bySecond.requests, bySecond.late, bySecond.instances].map(sums);
    for (const [step, count] of (came ?? []).entries()) {
      if (at === 0) measurements.push({ name: `trace.requests.${step}`, value: count / stepS });
      measurements.push(
        { name: `trace.${name}.instances.${step}`, value: (instances?.[step] ?? 0) / stepS },
        { name: `trace.${name}.late.${step}`, value: count === 0 ? 0 : (late?.[step] ?? 0) / count },
      );
    }
  }
  return measurements;
}

/** Sums over whole steps. */
function sums(values: Uint32Array): number[] {
  return Array.from({ length: Math.floor(values.length / stepS) }, (_, step) =>
    values.subarray(step * stepS, (step + 1) * stepS).reduce((sum, one) => sum + one, 0),
  );
}
