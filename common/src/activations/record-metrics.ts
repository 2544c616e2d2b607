import { Counter, Gauge } from 'prom-client';
import type { Registry } from 'prom-client';
import type { RecordExpiry } from './record-expiry.js';
import type { RecordWriter } from './record-writer.js';

/**
 * Shows in `registry` what waits for the store, as `gpuwhisk_<part>_records_pending` and `..._pending_bytes`, and what the store
 * refused for good, as `gpuwhisk_<part>_records_refused_total`.
 */
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
  const refused = 'Activation records that the store refuses for good, and that were set aside';
  counter(registry, `gpuwhisk_${part}_records_refused_total`, refused, () => records.refused);
}

/** Shows in `registry` how many records were removed, as `gpuwhisk_controller_records_expired_total`. */
export function showExpiry(registry: Registry, expiry: RecordExpiry): void {
  const help = 'Activation records that have expired and were removed';
  counter(registry, 'gpuwhisk_controller_records_expired_total', help, () => expiry.removed);
}

function counter(registry: Registry, name: string, help: string, value: () => number): void {
  registry.removeSingleMetric(name);
  registry.registerMetric(
    new Counter({
      name,
      help,
      registers: [],
      collect() {
        this.reset();
        this.inc(value());
      },
    }),
  );
}
