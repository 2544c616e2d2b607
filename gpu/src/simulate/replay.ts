import type { GpuKind } from '@gpuwhisk/common/gpu';
import { randomFraction, type Random } from '@gpuwhisk/common/system/random';
import { profiledRates } from '../algorithms/dilu/served.js';
import type { FunctionForecasts } from '../forecast/function-forecasts.js';
import type { Policy } from '../policies/policy.js';
import { countSharing, newShareCounts } from '../share/share-counts.js';
import type { ShareCounts } from '../share/share-counts.js';
import type { Action, Start } from '../view/decision.js';
import { allWait } from '../view/decision.js';
import { FunctionLog } from '../view/function-log.js';
import { functionKeyOf } from '../ledger/occupancy.js';
import { kindsOf } from '../ledger/places.js';
import type { SchedulingEvent, Task, View, WorkloadState } from '../view/view.js';
import { SimulatedActuator } from './simulated-actuator.js';
import type { EndedRun } from './simulated-parts.js';
import type { SimulatedPlace } from './simulated-gpu.js';
import type { RentedMachine, SimulatedProvider } from './simulated-provider.js';
import { actionTimes } from './simulated-times.js';
import type { ActionTimes } from './simulated-times.js';
import { report, reportMs, workloadState } from './simulated-workload.js';
import type { SimulatedWorkload, WorkloadRun } from './simulated-workload.js';
import type { StartPool } from './start-pool.js';

/** A job of a replay: what policies see of it, and what it really is. */
export interface ReplayJob {
  task: Task;
  /** Its name in the truth. */
  workload: string;
  /** Time alone at the full share without noise, ms. */
  soloMs: number;
  /** Injection or cold start before it computes, ms. */
  startMs: number;
  /** A run that was stopped is repeated; absent: it is not, and the job is lost. */
  isIdempotent?: boolean;
}

/** The GPUs of a replay. */
export interface SimulatedCluster {
  places: readonly SimulatedPlace[];
  /** Start of a task in an instance that is there, ms; absent: every task starts a new one, at the share that was decided. */
  warmMs?: number;
  /** GPUs of a node that policies can take; absent: none can be. */
  more?: readonly Omit<SimulatedPlace, 'id' | 'node' | 'idle'>[];
  /** Who rents them out; absent: each that is asked for comes, and stays. */
  provider?: SimulatedProvider;
  /** When the replay begins, and until when it goes on at least, ms; absent: with the first task, and until the last has ended. */
  fromMs?: number;
  untilMs?: number;
  /** When it ends, whatever waits or runs then, also for ever, ms; absent: when all have ended. */
  endMs?: number;
  /** How long actions take; absent: as was measured. */
  times?: ActionTimes;
  /** Forecasts that policies see, one made a minute for each function; absent: none. */
  forecasts?: FunctionForecasts;
  /** As of the actuator: refusals of the driver; absent: none. */
  cutFails?(device: string, profiles: readonly string[]): string | undefined;
  /** Pre-warmed processes; absent: each start takes what its job says. */
  pool?: StartPool;
  /** Training jobs on the GPUs, which report their rates each second; absent: none. */
  workloads?: readonly SimulatedWorkload[];
}

/** What a replay has shown. */
export interface ReplayRun {
  finished: FinishedJob[];
  /** Jobs that the policy refused. */
  refused: string[];
  /** Jobs whose run was stopped, and is not repeated. */
  stopped: string[];
  /** What the policy wanted done besides starts, when (ms), and why that was refused if it was. */
  actions: { at: number; action: Action; refused?: string }[];
  totals: RunTotals;
  /** Choices of shares for tasks that were put together. */
  shares: ShareCounts;
  /** What each decision took by the clock that was given, microseconds. */
  decideUs: number[];
  /** The workloads of the cluster, in order. */
  workloads: WorkloadRun[];
  /** Machines of the provider, in the order in which they were asked for. */
  machines: readonly RentedMachine[];
}

const tickMs = 1000;
/** A policy is asked about nodes so often. */
const procureMs = 60_000;
/** Tasks wait for machines for so long while nothing runs; then they would wait for ever. */
const longestIdleMs = 3_600_000;
/** As live: a policy that asks to decide again at once is asked after so long, ms. */
const shortestWakeMs = 1;
/** Decisions in a row at one instant; a policy that goes on for longer would never end. */
const mostDecisions = 10_000;

/**
 * Feeds `jobs` to `policy` and runs what it starts on GPUs that behave as `truth` says. Progress is computed again at
 * every event: an arrival, the end of a start or of a run, the passing of a deadline. All jobs that arrive at one instant
 * are told with one event. `nowMs` is a clock to time decisions by. Throws Error where a decision cannot be carried out, or
 * leaves jobs waiting for ever.
 */
export function replay(
  jobs: readonly ReplayJob[],
  cluster: SimulatedCluster,
  truth: GpuTruth,
  policy: Policy,
  random: Random,
  nowMs: () => number = () => 0,
): ReplayRun {
  const { warmMs, forecasts, workloads: trained = [], provider, untilMs = -Infinity, endMs = Infinity } = cluster;
  const functions = new FunctionLog<ReplayJob>();
  const actuator = new SimulatedActuator({
    places: cluster.places,
    keepsInstances: warmMs !== undefined,
    truth,
    times: cluster.times ?? actionTimes,
    known: (work) => functions.of(work)?.last,
    ...(cluster.more && { more: cluster.more }),
    ...(provider && { provider }),
    ...(cluster.pool && { pool: cluster.pool }),
    ...(cluster.cutFails && { cutFails: cluster.cutFails }),
    ...(trained.length > 0 && { workloads: trained }),
  });
  const coming = [...jobs].sort((a, b) => a.task.arrivedAt - b.task.arrivedAt);
  const noiseOf = new Map(coming.map((job) => [job.task.id, Math.exp(truth.noise * normal(random))]));
  const waiting = new Map<string, { job: ReplayJob; task: Task }>();
  /** Their tasks in order, made when it is read after a change. */
  let waits: readonly Task[] | undefined;
  /** Those with an SLO, by id, in the same order. */
  const strict = new Map<string, Task>();
  const run: ReplayRun = {
    finished: [],
    refused: [],
    stopped: [],
    decideUs: [],
    actions: [],
    totals: newTotals(),
    shares: newShareCounts(),
    workloads: [],
    machines: actuator.machines?.rented ?? [],
  };
  actuator.now = cluster.fromMs ?? coming[0]?.task.arrivedAt ?? 0;
  let nextArrival = 0;
  let nextTick = policy.scales === true ? actuator.now : Infinity;
  let nextProcure = provider !== undefined && policy.procures === true ? actuator.now : Infinity;
  let busyAt = actuator.now;
  let nextReport = trained.length > 0 ? actuator.now + reportMs : Infinity;
  /** What policies see of the workloads: the same list until the next report. */
  let workloads: readonly WorkloadState[] = workloadsNow();
  let decisions = 0;
  let wakeAt = Infinity;

  for (;;) {
    const { now } = actuator;
    const events: SchedulingEvent[] = [];
    if (wakeAt <= now) wakeAt = Infinity;
    let arrived: string | undefined;
    while (nextArrival < coming.length && (coming[nextArrival] as ReplayJob).task.arrivedAt <= now) {
      const job = coming[nextArrival] as ReplayJob;
      const { task } = job;
      wait(job, task);
      functions.arrived({ action: task.function, namespace: task.namespace }, job, now);
      arrived = task.id;
      nextArrival += 1;
    }
    if (arrived !== undefined) events.push({ kind: 'arrival', task: arrived });
    for (const one of actuator.settle()) events.push(over(one));
    for (const { id, arrivedAt, sloMs = Infinity } of strict.values()) {
      if (now >= arrivedAt + sloMs) events.push({ kind: 'timeout', task: id });
    }
    if (now >= nextReport) {
      for (const { training } of actuator.trainings) report(training, now, normal(random));
      workloads = workloadsNow();
      nextReport = now + reportMs;
    }
    if (now >= nextTick) {
      events.push({ kind: 'tick' });
      nextTick = now + tickMs;
    }
    const isNews = actuator.timers.hasMachineNews;
    actuator.timers.hasMachineNews = false;
    if (isNews) events.push({ kind: 'timer' });
    if (isNews ? nextProcure < Infinity : now >= nextProcure) {
      events.push({ kind: 'procure' });
      nextProcure = now + procureMs;
    }
    if (events.length === 0) events.push({ kind: 'timer' });
    for (const event of events) decide(event);
    const next = nextInstant();
    if (next === undefined || next > endMs) {
      if (waiting.size > 0 && endMs === Infinity)
        throw new Error(`policy ${policy.name} leaves ${waiting.size} tasks waiting for ever`);
      const { elapsedMs } = run.totals;
      run.workloads = actuator.trainings.map(({ training: { workload, progressMs, seconds } }) => {
        return { workload, elapsedMs, progressMs, seconds };
      });
      return run;
    }
    decisions = next > now ? 0 : decisions + 1;
    if (decisions > mostDecisions) throw new Error(`policy ${policy.name} does not let time pass`);
    actuator.advance(next, tasksWaiting(), run.totals);
  }

  function wait(job: ReplayJob, task: Task): void {
    waiting.set(task.id, { job, task });
    if (task.sloMs !== undefined) strict.set(task.id, task);
    waits = undefined;
  }

  function leave(id: string): boolean {
    strict.delete(id);
    waits = undefined;
    return waiting.delete(id);
  }

  function tasksWaiting(): readonly Task[] {
    return (waits ??= Array.from(waiting.values(), ({ task }) => task));
  }

  function nextInstant(): number | undefined {
    let next = Math.min(coming[nextArrival]?.task.arrivedAt ?? Infinity, actuator.nextInstant(), wakeAt);
    for (const { arrivedAt, sloMs = Infinity } of strict.values()) {
      // The deadline itself counts as passed only after it.
      next = Math.min(next, Math.max(actuator.now, arrivedAt + sloMs));
    }
    const { now } = actuator;
    if (next < Infinity) busyAt = now;
    else if (now < untilMs) next = untilMs;
    else if (waiting.size === 0 || provider === undefined || now - busyAt > longestIdleMs) return undefined;
    if (nextProcure < Infinity && actuator.timers.hasMachineNews) return now;
    return Math.min(next, nextTick, nextReport, nextProcure, actuator.timers.next(true));
  }

  function workloadsNow(): WorkloadState[] {
    return actuator.trainings.map(({ training, node }) => workloadState(training, node, actuator.now));
  }

  function over({ run: one, gpu, isStopped }: EndedRun): SchedulingEvent {
    const { now } = actuator;
    if (isStopped) {
      if (one.job.isIdempotent === true) wait(one.job, one.task);
      else run.stopped.push(one.task.id);
    } else {
      const { id, type: gpuType, mode } = gpu;
      run.finished.push({ job: one.job, startedAt: one.startedAt, finishedAt: now, gpu: id, gpuType });
      const ranMs = now - one.startedAt - one.startMs;
      functions.ran({ action: one.task.function, namespace: one.task.namespace }, ranMs);
      policy.observe?.({
        task: one.task,
        gpu: { id, gpuType, mode },
        share: one.share,
        ranMs,
        endedAt: now,
        beside: [...one.besideMs.values()].map(({ task, share, ms }) => ({
          task,
          share,
          part: Math.min(1, ms / (now - one.startedAt)),
        })),
      });
    }
    return { kind: 'completion', task: one.task.id, gpu: gpu.id };
  }

  function viewNow(): View {
    const { now, ledger } = actuator;
    return {
      at: now,
      ledger,
      runs: (id) => actuator.runOf(id),
      waiting: tasksWaiting(),
      get instances() {
        return actuator.instances;
      },
      get functions() {
        return Array.from(functions.all(), ({ last, counts, runMs }) => {
          const served = last.task.profiledShares && profiledRates(last.task, kindsOf(ledger.ledger.accounts()));
          return {
            task: last.task,
            arrivals: counts,
            ...(runMs !== undefined && { runMs }),
            ...(served !== undefined && { served }),
            ...(forecasts && { forecast: forecasts.of(functionKeyOf(last.task), counts, now) }),
          };
        });
      },
      get nodes() {
        return actuator.nodes;
      },
      get devices() {
        return actuator.deviceStates;
      },
      get procurement() {
        return actuator.machines?.state(now);
      },
      ...(trained.length > 0 && { workloads }),
    };
  }

  function mayMoveShares(): boolean {
    return policy.moves === true && actuator.open.some(({ movesShares }) => movesShares);
  }

  function decide(event: SchedulingEvent): void {
    const isAboutQueue = event.kind !== 'tick' && event.kind !== 'procure';
    if (waiting.size === 0 && isAboutQueue && !mayMoveShares()) return;
    const view = viewNow();
    const begun = nowMs();
    const decision = event.kind === 'timeout' && !waiting.has(event.task) ? allWait(view) : policy.decide(view, event);
    run.decideUs.push((nowMs() - begun) * 1000);
    if (isAboutQueue) wakeAt = Math.max(actuator.now + shortestWakeMs, decision.wakeAt ?? Infinity);
    for (const { task } of decision.refused) {
      if (!leave(task)) throw new Error(`policy ${policy.name} refuses ${task}, which does not wait`);
      run.refused.push(task);
    }
    for (const id of decision.bestEffort) demote(id);
    for (const start of decision.starts) begin(start);
    for (const sharing of decision.sharings ?? []) countSharing(run.shares, sharing);
    for (const action of decision.actions ?? []) {
      const refused = actuator.begin(action);
      run.actions.push({ at: actuator.now, action, ...(refused !== undefined && { refused }) });
    }
    // A task whose deadline has passed goes on as best effort, whatever the policy says of it.
    if (event.kind === 'timeout') demote(event.task);
  }

  function demote(id: string): void {
    const one = waiting.get(id);
    if (!one) return;
    const task = { ...one.task };
    delete task.sloMs;
    waiting.set(id, { job: one.job, task });
    strict.delete(id);
    waits = undefined;
  }

  function begin(start: Start): void {
    const { task: id, share } = start;
    const one = waiting.get(id);
    if (!one) throw new Error(`policy ${policy.name} starts ${id}: there is no such task`);
    if (!(share > 0 && share <= 1)) throw new Error(`policy ${policy.name} gives ${id} a share of ${share}`);
    try {
      actuator.start(one, start, one.job.soloMs * (noiseOf.get(id) ?? 1), warmMs);
    } catch (error) {
      throw new Error(`policy ${policy.name} ${(error as Error).message}`, { cause: error });
    }
    leave(id);
  }
}

/** Standard normal (Box and Muller). */
export function normal(random: Random): number {
  const radius = Math.sqrt(-2 * Math.log(1 - randomFraction(random)));
  return radius * Math.cos(2 * Math.PI * randomFraction(random));
}

/** A workload that computes on a GPU, by name, with its MPS share. */
export interface TruthClient {
  workload: string;
  share: number;
  /** Requests that it runs together; absent: one. */
  requests?: number;
}

/** What really happens on a GPU. Policies never see it. */
export interface GpuTruth {
  /** Time of each client beside the others over its time alone at the full share, without noise. */
  slowdowns(clients: readonly TruthClient[], gpu?: GpuKind): Float64Array;
  /** Part of the GPU's SMs that they use, 0 to 1. */
  used(clients: readonly TruthClient[], gpu?: GpuKind): number;
  /** Standard deviation of the logarithm of a run's time. */
  noise: number;
}

/** A job that has run. Times in ms of the replay. */
export interface FinishedJob {
  job: ReplayJob;
  startedAt: number;
  finishedAt: number;
  gpu: string;
  /** As `gpuTypeOf`: of a slice with its profile. */
  gpuType: string;
}

/** Sums over the whole of a replay. */
export interface RunTotals {
  elapsedMs: number;
  /** GPUs times elapsed time. */
  gpuMs: number;
  /** The part of it in which a GPU held a job. */
  occupiedMs: number;
  /** GPU time weighted by the part of the SMs in use. */
  usedMs: number;
  /** Solo time that was worked off. */
  progressMs: number;
  /** Free memory over time, while jobs wait. */
  freeMiBMs: number;
  /** The part of it on GPUs where no waiting job fits. */
  strandedMiBMs: number;
}

/** Nothing has run. */
export function newTotals(): RunTotals {
  return { elapsedMs: 0, gpuMs: 0, occupiedMs: 0, usedMs: 0, progressMs: 0, freeMiBMs: 0, strandedMiBMs: 0 };
}
