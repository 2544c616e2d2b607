import { randomFraction, type Random } from '@gpuwhisk/common/system/random';
import type { Decision, Start } from '../view/decision.js';
import type { Policy } from '../policies/policy.js';
import type { SchedulingEvent, Task } from '../view/view.js';
import { instanceOf, startAmong, type KeptInstances } from './kept-instances.js';
import { advance, rateAll, simulatedGpu } from './simulated-gpu.js';
import type { Run, SimulatedGpu, SimulatedPlace } from './simulated-gpu.js';
import { newTotals, type FinishedJob, type RunTotals } from './run-totals.js';
import type { GpuTruth } from './truth.js';

/** A job of a replay: what policies see of it, and what it really is. */
export interface ReplayJob {
  task: Task;
  /** Its name in the truth. */
  workload: string;
  /** Time alone at the full share without noise, ms. */
  soloMs: number;
  /** Injection or cold start before it computes, ms. */
  startMs: number;
}

/** The GPUs of a replay. */
export interface SimulatedCluster {
  places: readonly SimulatedPlace[];
  /** Start of a task in an instance that is there, ms; absent: every task starts a new one, at the share that was decided. */
  warmMs?: number;
}

/** GPUs that are alike. */
export interface AlikeGpus {
  gpus: number;
  type: string;
  mode: 'mps' | 'timeslice' | 'exclusive';
  memoryMiB: number;
  /** GPUs of a node. */
  perNode: number;
  /** Absent: every task starts in a new process, at the share that was decided. */
  kept?: KeptInstances;
}

/** A cluster of GPUs that are alike. */
export function alike({ gpus, type, mode, memoryMiB, perNode, kept }: AlikeGpus): SimulatedCluster {
  const places = Array.from({ length: gpus }, (_, index): SimulatedPlace => {
    const place = { id: `gpu${index}`, node: `node${Math.floor(index / perNode)}`, type, mode, memoryMiB };
    return kept === undefined ? place : { ...place, idle: kept.initial[index] ?? [] };
  });
  return { places, ...(kept && { warmMs: kept.warmMs }) };
}

/** What a replay has shown. */
export interface ReplayRun {
  finished: FinishedJob[];
  /** Jobs that the policy refused. */
  refused: string[];
  totals: RunTotals;
  /** What each decision took by the clock that was given, microseconds. */
  decideUs: number[];
}

const nothing: Decision = { starts: [], refused: [], bestEffort: [], order: [], rejected: [] };
/** Decisions in a row at one instant; a policy that goes on for longer would never end. */
const mostDecisions = 10_000;

/**
 * Feeds `jobs` to `policy` and runs what it starts on GPUs that behave as `truth` says. Progress is reckoned anew at
 * every event: an arrival, the end of a start or of a run, the passing of a deadline. All jobs that arrive at one instant
 * are told with one event. `nowMs` is a clock to time decisions by. Throws Error where a decision cannot be carried out, or leaves jobs waiting for ever.
 */
export function replay(
  jobs: readonly ReplayJob[],
  cluster: SimulatedCluster,
  truth: GpuTruth,
  policy: Policy,
  random: Random,
  nowMs: () => number = () => 0,
): ReplayRun {
  const { warmMs } = cluster;
  const gpus = cluster.places.map((place) => simulatedGpu(place, warmMs !== undefined));
  const gpuOf = new Map(gpus.map((gpu) => [gpu.id, gpu]));
  const coming = [...jobs].sort((a, b) => a.task.arrivedAt - b.task.arrivedAt);
  const noiseOf = new Map(coming.map((job) => [job.task.id, Math.exp(truth.noise * normal(random))]));
  const waiting = new Map<string, { job: ReplayJob; task: Task }>();
  const run: ReplayRun = { finished: [], refused: [], totals: newTotals(), decideUs: [] };
  let now = coming[0]?.task.arrivedAt ?? 0;
  let nextArrival = 0;
  let decisions = 0;

  for (;;) {
    const events: SchedulingEvent[] = [];
    let arrived: string | undefined;
    while (nextArrival < coming.length && (coming[nextArrival] as ReplayJob).task.arrivedAt <= now) {
      const job = coming[nextArrival] as ReplayJob;
      waiting.set(job.task.id, { job, task: job.task });
      arrived = job.task.id;
      nextArrival += 1;
    }
    if (arrived !== undefined) events.push({ kind: 'arrival', task: arrived });
    for (const gpu of gpus) events.push(...finish(gpu));
    for (const { task } of waiting.values()) {
      if (task.sloMs !== undefined && now >= task.arrivedAt + task.sloMs)
        events.push({ kind: 'timeout', task: task.id });
    }
    if (events.length === 0) events.push({ kind: 'timer' });
    for (const event of events) decide(event);
    const next = nextInstant();
    if (next === undefined) {
      if (waiting.size > 0) throw new Error(`policy ${policy.name} leaves ${waiting.size} tasks waiting for ever`);
      return run;
    }
    decisions = next > now ? 0 : decisions + 1;
    if (decisions > mostDecisions) throw new Error(`policy ${policy.name} does not let time pass`);
    const waits = [...waiting.values()].map(({ task }) => task);
    for (const gpu of gpus) advance(gpu, next - now, waits, run.totals);
    run.totals.elapsedMs += next - now;
    now = next;
  }

  function nextInstant(): number | undefined {
    let next = coming[nextArrival]?.task.arrivedAt ?? Infinity;
    for (const gpu of gpus)
      for (const one of gpu.runs) next = Math.min(next, now + one.startLeftMs + one.leftMs * one.slowdown);
    for (const gpu of gpus) {
      for (const one of gpu.runs) if (one.startLeftMs > 0) next = Math.min(next, now + one.startLeftMs);
    }
    for (const { task } of waiting.values()) {
      // The deadline itself counts as passed only after it.
      if (task.sloMs !== undefined) next = Math.min(next, Math.max(now, task.arrivedAt + task.sloMs));
    }
    return Number.isFinite(next) ? next : undefined;
  }

  function finish(gpu: SimulatedGpu): SchedulingEvent[] {
    const done = gpu.runs.filter((one) => one.startLeftMs <= 0 && one.leftMs <= 1e-6);
    if (done.length === 0) {
      rateAll(gpu, truth);
      return [];
    }
    gpu.runs = gpu.runs.filter((one) => !done.includes(one));
    if (gpu.idle) gpu.idle = [...gpu.idle, ...done.map(({ task, share }) => instanceOf(task, share))];
    rateAll(gpu, truth);
    return done.map((one) => {
      run.finished.push({ job: one.job, startedAt: one.startedAt, finishedAt: now, gpu: gpu.id });
      policy.observe?.({
        task: one.task,
        gpu: { id: gpu.id, type: gpu.type, mode: gpu.mode },
        share: one.share,
        ranMs: now - one.startedAt - one.startMs,
        beside: [...one.besideMs.values()].map(({ task, share, ms }) => ({
          task,
          share,
          part: Math.min(1, ms / (now - one.startedAt)),
        })),
      });
      return { kind: 'completion', task: one.task.id, gpu: gpu.id };
    });
  }

  function decide(event: SchedulingEvent): void {
    if (waiting.size === 0) return;
    const snapshot = { at: now, gpus, waiting: [...waiting.values()].map(({ task }) => task) };
    const begun = nowMs();
    const decision = event.kind === 'timeout' && !waiting.has(event.task) ? nothing : policy.decide(snapshot, event);
    run.decideUs.push((nowMs() - begun) * 1000);
    for (const { task } of decision.refused) {
      if (!waiting.delete(task)) throw new Error(`policy ${policy.name} refuses ${task}, which does not wait`);
      run.refused.push(task);
    }
    for (const id of decision.bestEffort) demote(id);
    for (const start of decision.starts) begin(start);
    // Whoever's deadline has passed waits on as best effort, whatever the policy says of it.
    if (event.kind === 'timeout') demote(event.task);
  }

  function demote(id: string): void {
    const one = waiting.get(id);
    if (!one) return;
    const task = { ...one.task };
    delete task.sloMs;
    waiting.set(id, { job: one.job, task });
  }

  function begin({ task: id, gpu: gpuId, share }: Start): void {
    const one = waiting.get(id);
    const gpu = gpuOf.get(gpuId);
    if (!one || !gpu) throw new Error(`policy ${policy.name} starts ${id} on ${gpuId}: there is no such task or GPU`);
    if (!(share > 0 && share <= 1)) throw new Error(`policy ${policy.name} gives ${id} a share of ${share}`);
    const taken = gpu.runs.reduce((sum, { task }) => sum + task.memoryMiB, 0);
    if (taken + one.task.memoryMiB > gpu.memoryMiB) {
      throw new Error(`policy ${policy.name} puts ${id} on ${gpuId}, which lacks the memory`);
    }
    if (gpu.mode === 'exclusive' && gpu.runs.length > 0) {
      throw new Error(`policy ${policy.name} puts ${id} on ${gpuId}, which is not free`);
    }
    waiting.delete(id);
    const begun = gpu.idle && startAmong(gpu.idle, one.task, share, gpu.memoryMiB - taken);
    if (begun) gpu.idle = begun.idle;
    const startMs = begun?.isWarm && warmMs !== undefined ? warmMs : one.job.startMs;
    const started: Run = {
      job: one.job,
      task: one.job.task,
      share: begun?.share ?? share,
      startedAt: now,
      startMs,
      startLeftMs: startMs,
      leftMs: one.job.soloMs * (noiseOf.get(id) ?? 1),
      slowdown: 1,
      besideMs: new Map(),
    };
    gpu.runs = [...gpu.runs, started];
    rateAll(gpu, truth);
  }
}

/** Standard normal (Box and Muller). */
export function normal(random: Random): number {
  const radius = Math.sqrt(-2 * Math.log(1 - randomFraction(random)));
  return radius * Math.cos(2 * Math.PI * randomFraction(random));
}
