// Metrics whose values are asked for when they are read.
import { Counter, Gauge } from 'prom-client';
import type { Registry } from 'prom-client';

/** Values by their labels, or the one value of a metric without labels. */
type Values = number | Iterable<readonly [labels: Readonly<Record<string, string>>, value: number]>;

type ShowMetric = (name: string, help: string, values: () => Values, labelNames?: readonly string[]) => void;

/** Functions that show gauges and counters in `registry`, each in place of one with its name. */
export function showMetricsIn(registry: Registry): { gauge: ShowMetric; counter: ShowMetric } {
  const showing =
    (type: typeof Gauge | typeof Counter): ShowMetric =>
    (name, help, values, labelNames = []) => {
      registry.removeSingleMetric(name);
      const metric: Gauge | Counter = new type({
        name,
        help,
        labelNames: [...labelNames],
        registers: [registry],
        collect() {
          metric.reset();
          const now = values();
          for (const [labels, value] of typeof now === 'number' ? [[{}, now] as const] : now) metric.inc(labels, value);
        },
      });
    };
  return { gauge: showing(Gauge), counter: showing(Counter) };
}
