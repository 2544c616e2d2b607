import { Counter, Gauge, Histogram } from 'prom-client';
import type { Registry } from 'prom-client';

/** How a decision about an activation ended: it was sent to a node, a node gave it back, or it is not run. */
export type GpuOutcome = 'placed' | 'returned' | 'failed';

/** What the GPU scheduler counts. */
export interface GpuMetrics {
  decided(outcome: GpuOutcome): void;
  /** An activation was placed so long after its acceptance. */
  waited(ms: number): void;
}

/** The metrics of a scheduler in `registry`; `waiting` tells how many activations wait now. */
export function gpuMetrics(registry: Registry, waiting: () => number): GpuMetrics {
  const registers = [registry];
  const decisions = new Counter({
    name: 'gpuwhisk_gpu_decisions_total',
    help: 'Decisions about activations that need a GPU',
    labelNames: ['outcome'],
    registers,
  });
  const waits = new Histogram({
    name: 'gpuwhisk_gpu_queue_seconds',
    help: 'From acceptance to placement',
    buckets: [0.001, 0.01, 0.1, 1, 10, 100, 1000],
    registers,
  });
  new Gauge({
    name: 'gpuwhisk_gpu_waiting',
    help: 'Activations that wait for a GPU',
    registers,
    collect() {
      this.set(waiting());
    },
  });
  return {
    decided: (outcome) => decisions.inc({ outcome }),
    waited: (ms) => waits.observe(ms / 1000),
  };
}
