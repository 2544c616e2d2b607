import { Gauge } from 'prom-client';
import type { Registry } from 'prom-client';
import type { RecordWriter } from './record-writer.js';

/** Shows in `registry` what waits for the store, as `gpuwhisk_<part>_records_pending` and `..._pending_bytes`. */
export function showRecords(registry: Registry, part: string, records: RecordWriter): void {
  const gauge = (name: string, help: string, value: () => number): void => {
    registry.removeSingleMetric(name);
    registry.registerMetric(
      new Gauge({
        name,
        help,
        registers: [],
        collect() {
          this.set(value());
        },
      }),
    );
  };
  const name = `gpuwhisk_${part}_records_pending`;
  gauge(name, 'Activation records that are not stored yet', () => records.pending);
  gauge(`${name}_bytes`, 'What they take, about', () => records.pendingBytes);
}
