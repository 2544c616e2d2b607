import { Counter, Gauge, Histogram } from 'prom-client';
import type { Registry } from 'prom-client';
import type { ColdStartRecord } from './gpu.js';

/** How a decision about an activation ended: it was sent to a node, a node gave it back, or it is not run. */
export type GpuOutcome = 'placed' | 'returned' | 'failed';

/** What the GPU scheduler counts. */
export interface GpuMetrics {
  decided(outcome: GpuOutcome): void;
  /** An activation was placed so long after its acceptance. */
  waited(ms: number): void;
  /** All who wait were decided about once, which took so long. */
  passed(ms: number): void;
  /** An action was carried out: `launch`, `retire`. */
  acted(kind: string, outcome: 'begun' | 'refused' | 'failed'): void;
  /** A policy failed, or decided what cannot be. */
  policyFault(): void;
  /** The lease was asked for or renewed: `epoch` is that of this controller's lease, undefined if it has none. */
  leased(epoch: number | undefined): void;
}

/** Values that are read when the metrics are collected. */
export interface GpuGauges {
  /** Activations that wait. */
  waiting(): number;
  /** Of the right to decide; undefined: another controller has it. */
  epoch(): number | undefined;
  /** Figures of stage geometry at its last evaluation, by name; absent: none. */
  geometry?(): Readonly<Record<string, number>>;
}

/** The metrics of a scheduler in `registry`. */
export function gpuMetrics(registry: Registry, { waiting, epoch, geometry }: GpuGauges): GpuMetrics {
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
  new Gauge({
    name: 'gpuwhisk_gpu_decider_epoch',
    help: "Epoch of this controller's right to decide, which grows whenever it changes hands; 0: another one has it",
    registers,
    collect() {
      this.set(epoch() ?? 0);
    },
  });
  new Gauge({
    name: 'gpuwhisk_gpu_geometry',
    help: 'Stage geometry at its last evaluation, by figure',
    labelNames: ['figure'],
    registers,
    collect() {
      this.reset();
      for (const [figure, value] of Object.entries(geometry?.() ?? {})) this.set({ figure }, value);
    },
  });
  const passes = new Histogram({
    name: 'gpuwhisk_gpu_pass_seconds',
    help: 'Time of one look at all activations that wait',
    buckets: [0.00001, 0.0001, 0.001, 0.01, 0.1, 1],
    registers,
  });
  const faults = new Counter({
    name: 'gpuwhisk_gpu_policy_faults_total',
    help: 'Decisions that another policy took because the one in force failed',
    registers,
  });
  const actions = new Counter({
    name: 'gpuwhisk_gpu_actions_total',
    help: 'What was done to instances, devices and nodes besides starting runs',
    labelNames: ['kind', 'outcome'],
    registers,
  });
  const changes = new Counter({
    name: 'gpuwhisk_gpu_decider_changes_total',
    help: 'How often this controller got the right to decide, and how often it lost it',
    labelNames: ['change'],
    registers,
  });
  let known: number | undefined;
  const leased: GpuMetrics['leased'] = (now) => {
    if (now === known) return;
    if (known !== undefined) changes.inc({ change: 'lost' });
    if (now !== undefined) changes.inc({ change: 'got' });
    known = now;
  };
  return {
    leased,
    acted: (kind, outcome) => actions.inc({ kind, outcome }),
    decided: (outcome) => decisions.inc({ outcome }),
    waited: (ms) => waits.observe(ms / 1000),
    passed: (ms) => passes.observe(ms / 1000),
    policyFault: () => faults.inc(),
  };
}

/** Shows in `registry` the number of nodes whose rows a controller cannot read. */
export function showNodes(registry: Registry, unread: () => number): void {
  new Gauge({
    name: 'gpuwhisk_gpu_unread_nodes',
    help: 'Nodes whose last row this controller could not read, so that they get no work',
    registers: [registry],
    collect() {
      this.set(unread());
    },
  });
}

/** The policy modules of a controller, and whether it leaves the lease to others because of them. */
interface ModuleGauges {
  /** SHA-256 of each. */
  hashes: readonly string[];
  differ(): boolean;
}

/** Shows the policy modules of a controller in `registry`. */
export function showModules(registry: Registry, { hashes, differ }: ModuleGauges): void {
  const registers = [registry];
  new Gauge({
    name: 'gpuwhisk_gpu_policy_modules_differ',
    help: '1 while this controller leaves decisions to others, as its policy modules are not those of the leader',
    registers,
    collect() {
      this.set(Number(differ()));
    },
  });
  const modules = new Gauge({
    name: 'gpuwhisk_gpu_policy_module_info',
    help: 'Always 1; the label is the SHA-256 of a policy module of this controller',
    labelNames: ['sha256'],
    registers,
  });
  for (const sha256 of hashes) modules.set({ sha256 }, 1);
}

/**
 * Returns a function that counts the cold starts of functions with a GPU in `registry`, by part. The invokers of one process
 * share the histogram.
 */
export function coldStartMetrics(registry: Registry): (parts: ColdStartRecord) => void {
  const name = 'gpuwhisk_gpu_cold_start_seconds';
  const known = registry.getSingleMetric(name) as Histogram<'part'> | undefined;
  const seconds =
    known ??
    new Histogram({
      name,
      help: 'Parts of starts that loaded code, as annotation coldStart of records names them',
      labelNames: ['part'],
      buckets: [0.001, 0.01, 0.1, 1, 10, 100],
      registers: [registry],
    });
  return (parts) => {
    for (const [field, ms] of Object.entries(parts)) seconds.observe({ part: field.replace(/Ms$/, '') }, ms / 1000);
  };
}
