import { Counter, Gauge } from 'prom-client';
import type { Registry } from 'prom-client';

const [microsecond, second] = [1e-6, 1000];

/**
 * Shows this process in `registry`, under the names that Prometheus' client libraries give. prom-client's own collection also
 * samples the event loop and garbage collections, which takes processor time between scrapes.
 */
export function showProcess(registry: Registry): void {
  const registers = [registry];
  new Gauge({
    name: 'process_resident_memory_bytes',
    help: 'Resident memory of the process',
    registers,
    collect() {
      this.set(process.memoryUsage.rss());
    },
  });
  new Counter({
    name: 'process_cpu_seconds_total',
    help: 'Processor time of the process, in user and system mode',
    registers,
    collect() {
      const { user, system } = process.cpuUsage();
      this.reset();
      this.inc((user + system) * microsecond);
    },
  });
  new Gauge({ name: 'process_start_time_seconds', help: 'Start of the process, epoch s', registers }).set(
    (Date.now() - process.uptime() * second) / second,
  );
}
