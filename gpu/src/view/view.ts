import type { DeviceMode, GpuAnnotation, GpuIsolation, GpuKind } from '@gpuwhisk/common/gpu';
import type { Forecast } from '../forecast/ls-lstm.js';
import type { WorkloadFeatures, FeatureRecord } from '../predict/slowdown-predictor.js';
import type { PlacementRequest } from '../ledger/account.js';
import type { InputSize } from './input-size.js';
import type { Market } from './decision.js';
import type { ArrivalCounts } from './function-log.js';
import type { OpenLedger } from '../ledger/used-places.js';
import type { WorkloadStanding } from './workload-standing.js';

/**
 * Request and limit that a profile found for a function on a kind of GPU, thousandths of the SMs, and the batch that they
 * hold for.
 */
export interface ProfiledShares extends GpuKind {
  request: number;
  limit: number;
  batch: number;
  /** Time of a batch with the request, and with the limit, ms; the latter is absent if it was not measured. */
  ms: number;
  limitMs?: number;
}

/** A batch of requests of one function that waits or runs. Times in ms, on the clock of the view. */
export interface Task {
  id: string;
  /** `/namespace/action` of its code. */
  function: string;
  /** Version of the function; measurements hold for one version. */
  version: string;
  /** The namespace that it runs for. */
  namespace: string;
  /** Requests that run together. */
  batch: number;
  /** Size of its input; absent: not known. */
  inputSize?: InputSize;
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
  /** All known figures of its function by name: measured ones, and for other names those of its annotation. */
  featureRecord?: FeatureRecord;
  /** By kind of GPU; absent: no profile of its function's shares has been finished. */
  profiledShares?: readonly ProfiledShares[];
  arrivedAt: number;
  /** From arrival to result; absent: best effort. */
  sloMs?: number;
  class: GpuAnnotation['class'];
  /** It is not stopped for other work: a training job that keeps no checkpoints. */
  mustNotStop?: true;
  /** The share that its owner has fixed, 0 < share ≤ 1; absent: the policy chooses. */
  share?: number;
  /** The largest share that it may have, and only where it is held to it; absent: 1. */
  maxShare?: number;
  /** Who may share an MPS server with it; absent: all that allow it. */
  isolation?: GpuIsolation;
  /** GPUs that it may be put on, by id, as failed attempts leave them; absent: all. */
  allowed?: ReadonlySet<string>;
  /** Its request to a device; absent: made of the fields above. */
  request?: PlacementRequest;
}

/** A task on a GPU. */
export interface RunningTask {
  task: Task;
  /** Its limit: fraction of the GPU, 0 < share ≤ 1. */
  share: number;
  /** The share that it always gets on demand, fraction of the GPU; absent: its limit. */
  request?: number;
  /** When it was started there, ms. */
  startedAt: number;
  /** Id of its instance, and the class of that, fraction of the GPU; absent: not known, so that its limit stays. */
  instance?: string;
  class?: number;
}

/** The task and the start of a run, by its activation; undefined: it is not known. */
export type KnownRuns = (activationId: string) => Pick<RunningTask, 'task' | 'startedAt'> | undefined;

/** The share that plans count for a running task: where limits move, the limit that it may come back to. */
export function plannedShare(movesShares: boolean, { task, share, class: own = share }: RunningTask): number {
  return movesShares ? Math.max(share, Math.min(own, task.share ?? 1, task.maxShare ?? 1)) : share;
}

/** A process, or a gang of processes, that serves one function. */
export interface InstanceState {
  id: string;
  /** `/namespace/action` of its code, and the namespace that it runs for. */
  function: string;
  namespace: string;
  /** Ids of its places. */
  gpus: readonly string[];
  /** Fractions of the SMs: request ≤ limit ≤ class, which its process was started with. */
  share: { request: number; limit: number; class: number };
  /** On each of its places, MiB. */
  memoryMiB: number;
  /** `draining`: it is to end, and something runs in it. */
  state: 'loading' | 'idle' | 'running' | 'draining';
  /** Ids of the tasks that run in it. */
  tasks: readonly string[];
  /** Since when it idles, on the clock of the view, ms; absent: it does not idle. */
  idleSince?: number;
  /** How long it took to start it and to load its function, ms; absent: it is not told. */
  loadMs?: number;
}

/** Requests per second that one instance serves with full batches, at its request and at its limit of the SMs. */
export interface ServedRates {
  request: number;
  limit: number;
}

/** A function of which requests have come. */
export interface FunctionState {
  /** A request of it as it would arrive now. */
  task: Task;
  arrivals: Pick<ArrivalCounts, 'bySecond' | 'byMinute'>;
  /** Mean time of its last runs as they were served, without starts, ms; absent: none has ended. */
  runMs?: number;
  /** What an instance was profiled to serve; absent: it was not profiled. */
  served?: ServedRates;
  /** Requests that are expected in the minute of the view; absent: none are forecast. */
  forecast?: Forecast;
}

/** A machine with an agent. */
export interface NodeState {
  id: string;
  labels: Readonly<Record<string, string>>;
  /** How it is paid for, and per hour, in the operator's currency; absent: it is the operator's own. */
  market?: Market;
  pricePerHour?: number;
  /** When it will be taken away, on the clock of the view, ms; absent: nothing was announced. */
  leavesAt?: number;
}

/** A machine that the platform has asked a provider for. */
export interface MachineState {
  id: string;
  market: Market;
  /**
   * `asked`: the provider has not answered. `booting`: its agent has never reported. `up`: it is a node. `lost`: its agent
   * reports no more. `leaving`: it is given back.
   */
  state: 'asked' | 'booting' | 'up' | 'lost' | 'leaving';
  /** Its node; absent before the first report. */
  node?: string;
  /** When its provider takes it away, on the clock of the view, ms; absent: nothing was announced. */
  leavesAt?: number;
  /** In the operator's currency; absent: not known. */
  pricePerHour?: number;
}

/** The machines of a provider, and what is known of its markets. */
export interface ProcurementState {
  /** Number of nodes with a market that there are to be. */
  wanted: number;
  machines: readonly MachineState[];
  /** Prices per hour, in the operator's currency; absent: not known. */
  prices: Readonly<Partial<Record<Market, number>>>;
  /** When a market last had no machine, on the clock of the view, ms; absent: it had one, or was not asked. */
  refusedAt: Readonly<Partial<Record<Market, number>>>;
}

/** A physical GPU. */
export interface DeviceState {
  id: string;
  node: string;
  /** The short name of its model. */
  type: string;
  mode: DeviceMode;
  /** Sets of MIG profiles that it can be cut into; none: it cannot be cut. */
  geometries: readonly (readonly string[])[];
  /** The places on it: itself, or its slices. */
  places: readonly { id: string; profile?: string; startSlot?: number; slots?: number }[];
  /** Why it may not be cut now; absent: it may. */
  mayNotCut?: string;
  /** A cut that is wanted of it and has not come about; `refused`: why its node has given that up. */
  cut?: { profiles: readonly string[]; refused?: string };
}

/** A process on a device that is not the platform's, a training job. */
export interface WorkloadState {
  id: string;
  /** What it runs: what is learned of its pairs holds for all workloads of the name; absent: it goes by its id. */
  name?: string;
  /** All known figures of it by name; absent: none is known. */
  features?: FeatureRecord;
  node: string;
  device: string;
  /** By how much it may get slower, fraction 0–1 of its rate. */
  tolerated: number;
  /** Rate alone, in the workload's own unit, and its source; absent: not known. */
  baseline?: number;
  baselineFrom?: 'declared' | 'measured';
  /** The last reported rate and the time of that report, epoch ms; absent: never reported. */
  rate?: number;
  reportedAt?: number;
  /** Degradation of the rate, fraction 0–1; absent: not known, or the last report is stale. */
  measured?: number;
  /** Estimated degradation by the functions that run beside it, fraction 0–1; absent: none runs, or it is measured. */
  estimated?: number;
  /** The degradation against the tolerated one; absent: never reported. */
  state?: WorkloadStanding;
}

/** The input of a policy: the cluster and its queue at one instant. */
export interface View {
  /** Now, ms. The clock may be set back: a policy must not rely on its growing. */
  at: number;
  /** In no particular order. */
  waiting: readonly Task[];
  /** The places as they are kept from decision to decision. */
  ledger: OpenLedger;
  /** What runs on them. */
  runs: KnownRuns;
  /** Further views of the cluster, each absent if not known. They are made when they are first read. */
  readonly instances?: readonly InstanceState[];
  readonly functions?: readonly FunctionState[];
  readonly nodes?: readonly NodeState[];
  readonly devices?: readonly DeviceState[];
  readonly workloads?: readonly WorkloadState[];
  /** Absent: no machines are rented. */
  readonly procurement?: ProcurementState;
}

/** Why a decision is asked for. */
export type SchedulingEvent =
  | { kind: 'arrival'; task: string }
  | { kind: 'completion'; task: string; gpu: string }
  /** A task's deadline has passed, or it has waited for as long as it may. */
  | { kind: 'timeout'; task: string }
  /** A second has passed: the policy decides about instances, besides the queue. */
  | { kind: 'tick' }
  /** A workload has reported that it is slower than it tolerates: functions beside it may have to give way. */
  | { kind: 'report' }
  /** A minute has passed, a node got a notice, or a provider has answered: the policy decides about nodes. */
  | { kind: 'procure' }
  /** Any other change: time has passed, a GPU came or went. */
  | { kind: 'timer' };

/** When a task has to have its result, ms; Infinity for best effort. */
export function deadlineAt({ arrivedAt, sloMs }: Pick<Task, 'arrivedAt' | 'sloMs'>): number {
  return arrivedAt + (sloMs ?? Infinity);
}
