import type { Measurement } from '../bench.js';
import { memoryOf } from '../processes.js';
import { median, slope } from '../statistics.js';
import { clusterCpu, type Cluster } from './running-cluster.js';

const memoryEveryMs = 2000;
const saidEvery = 5;

/** What the processes of a cluster take while it is watched. */
export interface ClusterWatch {
  /** Ends it: memory and its trend in the second half, and processor seconds for 1,000 of `activations`. */
  stop(activations: number): Measurement[];
}

/** Samples the memory of controllers and invokers, and says every ten seconds what processors do and what `progress` gives. */
export function watchCluster(cluster: Cluster, say: (line: string) => void, progress: () => string): ClusterWatch {
  const members = [...cluster.controllers, ...cluster.invokers];
  const memory = new Map(members.map(({ name }) => [name, [] as (readonly [number, number])[]]));
  const beganMs = performance.now();
  const began = cpuOf(cluster);
  let [saidMs, said, samples] = [beganMs, began, 0];
  const sample = (): void => {
    const atS = (performance.now() - beganMs) / 1000;
    for (const { name, pid } of members) memory.get(name)?.push([atS, memoryOf(pid).rssMiB]);
    samples += 1;
    if (samples % saidEvery !== 0) return;
    const [nowMs, now] = [performance.now(), cpuOf(cluster)];
    const shares = Object.entries(now).map(([name, s]) => {
      const share = (s - (said[name] ?? 0)) / ((nowMs - saidMs) / 1000);
      return `${name} ${share.toFixed(2)}`;
    });
    say(`  ${atS.toFixed(0)} s: ${progress()}; processors: ${shares.join(', ')}`);
    [saidMs, said] = [nowMs, now];
  };
  const timer = setInterval(sample, memoryEveryMs);
  return {
    stop(activations) {
      clearInterval(timer);
      sample();
      const now = cpuOf(cluster);
      const later = new Map([...memory].map(([name, all]) => [name, all.slice(Math.floor(all.length / 2))]));
      const medians = [...later.values()].map((all) => median(all.map(([, rssMiB]) => rssMiB)));
      const trends = [...later].map(([name, all]) => ({ name, value: slope(all) * 60 }));
      return [
        { name: 'memoryMiB', value: medians.reduce((sum, one) => sum + one, 0) },
        { name: 'memoryTrendMiBPerMin', value: trends.reduce((sum, { value }) => sum + value, 0) },
        ...trends.map(({ name, value }) => ({ name: `memoryTrendMiBPerMin.${name}`, value })),
        ...Object.entries(now).map(([name, s]) => ({
          name: `loadCpuSPer1000.${name}`,
          value: ((s - (began[name] ?? 0)) * 1000) / Math.max(1, activations),
        })),
      ];
    },
  };
}

/** Of the cluster's processes, and of this one, which offers the load and is the way to the controllers; s. */
function cpuOf(cluster: Cluster): Record<string, number> {
  const { user, system } = process.cpuUsage();
  return { ...clusterCpu(cluster), bench: (user + system) / 1e6 };
}
