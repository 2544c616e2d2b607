import type { DeviceMode, GpuAnnotation, GpuIsolation, Rejection } from '@gpuwhisk/common/gpu';
import type { Account } from '../place/account.js';
import type { WorkloadFeatures } from '../predict/slowdown-predictor.js';

/** A batch of requests of one function that waits or runs. Times in ms, on the clock of the snapshot. */
export interface Task {
  id: string;
  /** `/namespace/action` of its code. */
  function: string;
  /** Of the function; what is learned holds for one. */
  version: string;
  /** That it runs for. */
  namespace: string;
  /** Requests that run together. */
  batch: number;
  /** GPUs that it needs: of one node and alike. */
  gpus: number;
  /** Device memory on each of them, MiB; 0 or NaN: unknown, so that it takes a whole GPU. */
  memoryMiB: number;
  /** Time alone at 100 %; absent: it has not been measured. */
  soloMs?: number;
  /** Time from its start until it computes: injection, or a cold start. Absent: 0. */
  startMs?: number;
  /** Absent: it has not been profiled. */
  features?: WorkloadFeatures;
  arrivedAt: number;
  /** From arrival to result; absent: best effort. */
  sloMs?: number;
  class: GpuAnnotation['class'];
  /** The share that its owner has fixed, 0 < share ≤ 1; absent: the policy chooses. */
  share?: number;
  /** The largest share that it may have, and only where it is held to it; absent: 1. */
  maxShare?: number;
  /** Who may share an MPS server with it; absent: everybody who allows it. */
  isolation?: GpuIsolation;
  /** GPUs that it may be put on, by id, as failed attempts leave them; absent: all. */
  allowed?: ReadonlySet<string>;
}

/** A task on a GPU. */
export interface RunningTask {
  task: Task;
  /** Fraction of the GPU, 0 < share ≤ 1. */
  share: number;
  /** When it was started there, ms. */
  startedAt: number;
}

/** An instance of a function that idles on a GPU: it starts at once for a task of its function, share and memory. */
export interface IdleInstance {
  function: string;
  namespace: string;
  share: number;
  /** What it holds; an instance may be removed to make room, so that this is not taken from `memoryMiB`. */
  memoryMiB: number;
}

/** A GPU, or a slice of one. One that is not healthy is in no snapshot. */
export interface GpuState {
  id: string;
  node: string;
  /** The short name of its model; what is learned holds for one type in one mode. */
  type: string;
  mode: DeviceMode;
  /** That tasks may have in all, MiB: what others hold is taken off. */
  memoryMiB: number;
  running: readonly RunningTask[];
  /** Absent: none. */
  idle?: readonly IdleInstance[];
  /** What is known of who is there beyond `running` and `idle`; absent: nothing. */
  facts?: Pick<Account, 'availableMiB' | 'clients' | 'busy' | 'workloads' | 'staying'>;
}

/** All that a policy decides on. */
export interface Snapshot {
  /** Now, ms. A clock may be set back: nobody may rely on its growing. */
  at: number;
  gpus: readonly GpuState[];
  /** In no particular order. */
  waiting: readonly Task[];
}

/** Why a decision is asked for. */
export type SchedulingEvent =
  | { kind: 'arrival'; task: string }
  | { kind: 'completion'; task: string; gpu: string }
  /** A task's deadline has passed, or it has waited for as long as it may. */
  | { kind: 'timeout'; task: string }
  /** Nothing that is known of: time has passed, a GPU came or went. */
  | { kind: 'timer' };

/** A waiting task that starts now. */
export interface Start {
  task: string;
  gpu: string;
  /** The other GPUs of a task that needs several. */
  alsoOn?: readonly string[];
  /** Fraction of the GPU, 0 < share ≤ 1. */
  share: number;
  /** Predicted time from now to its result, ms; absent where nothing is known of it. */
  predictedMs?: number;
  /** Why it is where it is. */
  reason: string;
}

/** Why a task that waits was not put on a GPU. */
export interface TaskRejection extends Rejection {
  task: string;
}

/** What is to be done now. A task that is named nowhere in it goes on to wait. */
export interface Decision {
  starts: readonly Start[];
  /** Those that will never run, and why; each is answered with an error. */
  refused: readonly { task: string; reason: string }[];
  /** Those that cannot meet their SLO and go on as best effort. */
  bestEffort: readonly string[];
  /** Those that go on to wait, the next one first. */
  order: readonly string[];
  rejected: readonly TaskRejection[];
}

/** A run that has ended, as it was measured. */
export interface ObservedRun {
  task: Task;
  gpu: Pick<GpuState, 'id' | 'type' | 'mode'>;
  share: number;
  /** From its start to its result without injection or a cold start, ms. */
  ranMs: number;
  /** Who ran beside it, each with the part of its run in which it did; several at once may be told as one, above 1. */
  beside: readonly { task: Task; share: number; part: number }[];
}

/** Decides which tasks run where and with what share. It reads no clock and draws no randomness of its own. */
export interface Policy {
  readonly name: string;
  /** What is decided counts at once: the next snapshot has the starts among what runs. */
  decide(snapshot: Snapshot, event: SchedulingEvent): Decision;
  /** Learns from a run; absent in a policy that learns nothing. */
  observe?(run: ObservedRun): void;
}

/** When a task has to have its result, ms; Infinity for best effort. */
export function deadlineAt({ arrivedAt, sloMs }: Pick<Task, 'arrivedAt' | 'sloMs'>): number {
  return arrivedAt + (sloMs ?? Infinity);
}
