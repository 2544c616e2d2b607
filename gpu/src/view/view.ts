import type { DeviceMode, GpuAnnotation, GpuIsolation } from '@gpuwhisk/common/gpu';
import type { WorkloadFeatures } from '../predict/slowdown-predictor.js';
import type { Account } from './account.js';
import type { Ledger } from './ledger.js';
import type { PlacementRequest } from './placement-request.js';

/** A batch of requests of one function that waits or runs. Times in ms, on the clock of the view. */
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
  /** Its request to a device; absent: made of the fields above. */
  request?: PlacementRequest;
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

/** A GPU, or a slice of one. One that is not healthy is in no view. */
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

/** The account of all places, which decisions change. */
export interface OpenLedger {
  ledger: Ledger;
  /** Whether a node may be chosen: it is heard of. */
  isOpen(invoker: string): boolean;
  /** Of the decider's lease. */
  epoch: number;
}

/** All that a policy decides on. */
export interface View {
  /** Now, ms. The clock may be set back: a policy must not rely on its growing. */
  at: number;
  /** The controller makes them when they are first read: a policy that uses the ledger only does not read them. */
  readonly gpus: readonly GpuState[];
  /** In no particular order. */
  waiting: readonly Task[];
  /** The places as they are kept from decision to decision; absent: they are counted from `gpus`. */
  ledger?: OpenLedger;
}

/** Why a decision is asked for. */
export type SchedulingEvent =
  | { kind: 'arrival'; task: string }
  | { kind: 'completion'; task: string; gpu: string }
  /** A task's deadline has passed, or it has waited for as long as it may. */
  | { kind: 'timeout'; task: string }
  /** Nothing that is known of: time has passed, a GPU came or went. */
  | { kind: 'timer' };

/** When a task has to have its result, ms; Infinity for best effort. */
export function deadlineAt({ arrivedAt, sloMs }: Pick<Task, 'arrivedAt' | 'sloMs'>): number {
  return arrivedAt + (sloMs ?? Infinity);
}
