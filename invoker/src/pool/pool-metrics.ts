import { showMetricsIn } from '@gpuwhisk/common/shown-metrics';
import type { Registry } from 'prom-client';
import type { PoolSnapshot } from './container-pool.js';
import type { Snapshots } from './snapshots.js';
import type { StemCellCounts } from './stem-cells.js';

/** A pool whose figures are shown. */
interface ShownPool {
  snapshot(): PoolSnapshot;
  stemCellCounts(): Iterable<Readonly<StemCellCounts>>;
  learnedMiB(): number;
  readonly snapshots: Pick<Snapshots, 'figures' | 'standingMiB'>;
}

const MiB = 1024 * 1024;

/** Shows a pool in `registry`, under the names of OpenWhisk's invokers where these have one. */
export function showPool(registry: Registry, pool: ShownPool): void {
  const metrics = showMetricsIn(registry);
  const gauge = (name: string, help: string, value: (snapshot: PoolSnapshot) => number): void =>
    metrics.gauge(name, help, () => value(pool.snapshot()));
  const counter = (name: string, help: string, value: (counts: StemCellCounts) => number): void => {
    const values = (): [Record<string, string>, number][] =>
      Array.from(pool.stemCellCounts(), (counts) => [
        { kind: counts.kind, memory: `${counts.memoryMiB} MB` },
        value(counts),
      ]);
    metrics.counter(name, help, values, ['kind', 'memory']);
  };
  gauge('gauge_containerPool_prewarmCount_counter', 'Containers ready for a future action', (now) => now.prewarmed);
  gauge('gauge_containerPool_activeCount_counter', 'Containers with a run', (now) => now.containers - now.idle);
  gauge('gpuwhisk_invoker_containers', 'Containers of actions', (now) => now.containers);
  gauge('gpuwhisk_invoker_waiting', 'Activations that wait for a container', (now) => now.waitingJobs);
  gauge('gpuwhisk_invoker_claimed_memory_bytes', 'Memory that containers may use', (now) => now.claimedMiB * MiB);
  const real = 'Real memory of the containers that are ready with learned modules';
  metrics.gauge('gpuwhisk_learned_containers_memory_bytes', real, () => pool.learnedMiB() * MiB);
  const figures = (): ReturnType<Snapshots['figures']> => pool.snapshots.figures();
  metrics.gauge('gpuwhisk_snapshots', 'Snapshots of loaded functions', () => figures().standing);
  const taken = 'Memory of the snapshots of loaded functions';
  metrics.gauge('gpuwhisk_snapshots_bytes', taken, () => pool.snapshots.standingMiB * MiB);
  const saved = 'Time of loads that containers saved as copies of a loaded function';
  metrics.counter('gpuwhisk_snapshot_saved_seconds_total', saved, () => figures().savedSeconds);
  const starts = 'New containers of functions that want snapshots: restored, or why they are no copy';
  const byOutcome = (): [Record<string, string>, number][] =>
    [...figures().starts].map(([outcome, count]) => [{ outcome }, count]);
  metrics.counter('gpuwhisk_snapshot_starts_total', starts, byOutcome, ['outcome']);
  const coldStarts = 'Starts that no prewarmed container could serve';
  counter('counter_containerPool_prewarmColdstart_counter_total', coldStarts, (counts) => counts.coldStarts);
  const expired = 'Prewarmed containers that were removed unused';
  counter('counter_containerPool_prewarmExpired_counter_total', expired, (counts) => counts.expired);
}
