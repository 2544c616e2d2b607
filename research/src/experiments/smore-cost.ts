// What a decision of SMORE costs by the size of the cluster (thesis section 5.6.1, figure 5.11).
import { medianOf, type BenchContext, type Measurement } from '@gpuwhisk/bench/bench';
import { percentile } from '@gpuwhisk/bench/statistics';
import { smoreDecisions } from '@gpuwhisk/bench/benches/decide';

const sizes = [8, 64, 512, 1024, 10_000] as const;
const fits = { best: 'best', fast: 'first' } as const;
/** Events of a run in which all places of the cluster are looked at: fewer in a large cluster, which bounds the time. */
const eventsAt = (devices: number, fit: 'best' | 'first'): number => (fit === 'best' && devices > 1024 ? 200 : 6000);

/** `costUs.MODE.DEVICES`: the median of the end of a run and one decision, as bench `decide` measures it; and its P99. */
export function smoreCost({ say }: BenchContext): Measurement[] {
  return sizes.flatMap((devices) =>
    Object.entries(fits).flatMap(([mode, fit]) => {
      const times = smoreDecisions(devices, fit, eventsAt(devices, fit));
      const median = medianOf(`costUs.${mode}.${devices}`, times);
      say(`  ${devices} devices, ${mode}: ${median.value.toFixed(1)} µs`);
      return [median, { name: `costP99Us.${mode}.${devices}`, value: percentile(times, 99) }];
    }),
  );
}
