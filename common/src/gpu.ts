import type { AloneTimes, SharedFault } from './gpu-observations.js';
import type { WorkloadGuard } from './workload-guard.js';

/**
 * How a device is shared: by one process, in turns (`timeslice`, the driver's own way), by MPS clients side by side, or
 * cut into MIG instances.
 */
export type DeviceMode = 'exclusive' | 'timeslice' | 'mps' | 'mig';

/** A kind of GPU: what is learned on one type in one mode holds for no other. */
export interface GpuKind {
  /** The short name of its model, of a MIG instance with the profile: `a100-40`, `a100-40:3g.20gb`. */
  gpuType: string;
  mode: DeviceMode;
}

/** The name of a kind of GPU in tables and documents: `a100-40/mps`. */
export const kindName = ({ gpuType, mode }: GpuKind): string => `${gpuType}/${mode}`;

/** Shares, in percent, that warm processes are kept in: an MPS percentage is fixed when a process connects. */
export const shareClasses = [10, 20, 30, 50, 70, 100] as const;
/** One of them. */
export type ShareClass = (typeof shareClasses)[number];

/** A MIG instance: a GPU instance with one compute instance over all of it. */
export interface Slice {
  /** What CUDA_VISIBLE_DEVICES takes: `MIG-…`. */
  uuid: string;
  /** `3g.20gb`. */
  profile: string;
  /** First memory slot, −1 where the driver tells it only to root; and how many. */
  startSlot: number;
  slots: number;
  /** Id of its GPU instance, which the driver names its capability files by. */
  instance?: number;
  smCount: number;
  memoryMiB: number;
}

/** What is known of a GPU when it is looked up. */
export interface Device {
  /** `GPU-…`. */
  uuid: string;
  /** The driver's index, which may change with a restart. */
  index: number;
  /** The vendor's name: `NVIDIA A100-SXM4-40GB`. */
  name: string;
  /** The short name of its model in keys and tables: `a100-40`. */
  type: string;
  smCount: number;
  memoryMiB: number;
  mode: DeviceMode;
  /** Empty where `mode` is not `mig`. */
  slices: Slice[];
  simulated: boolean;
  /** In time slices while several namespaces use it; work whose share is bounded brings MPS back. Absent: it stays in its mode. */
  returnsToMps?: true;
}

/** Whether work may be placed on a device, and why not. */
export interface DeviceHealth {
  /** `leaving`: its node will be taken away; until then instances that are there take runs that end in time. */
  state: 'healthy' | 'leaving' | 'cordoned' | 'draining' | 'offline';
  /** In words, for an operator; empty where healthy. */
  reasons: string[];
  /** Longest time limit of a run that still ends in time, ms; only where it is leaving. */
  longestRunMs?: number;
}

/** A process that uses a device. */
export interface GpuProcess {
  /** The host's id of the process. */
  pid: number;
  memoryMiB: number;
  /**
   * Part of the time in which a kernel of it ran, 0–1, on however few SMs: it tells busy from idle and nothing else. Absent
   * where the chip or its mode does not tell.
   */
  utilisation?: number;
  /** Of the container, where it is one of ours. */
  container?: string;
  /** The id of the workload that the agent has attested it to belong to. */
  workload?: string;
  /** The MIG instance that it runs in. */
  slice?: string;
}

/** One look at a device (SMORE thesis, section 4.6: NodeStatus). Fractions are 0–1; absent where the chip does not tell. */
export interface DeviceStatus {
  uuid: string;
  /** Epoch ms. */
  at: number;
  usedMemoryMiB: number;
  /** Part of the time in which some kernel ran, on however few SMs. Absent under MIG. */
  utilisation?: number;
  /** Parts of the SMs and of the memory bandwidth in use, on average since the look before. Absent before Hopper and under MIG. */
  smActivity?: number;
  dramActivity?: number;
  temperatureC?: number;
  powerW?: number;
  /** What a CUDA context was measured to take, MiB. */
  contextMiB?: number;
  health: DeviceHealth;
  processes: GpuProcess[];
  /** The last cut that was wanted of it; absent: none was. */
  cut?: CutStatus;
}

/** A wanted cut of a device, as its agent carries it out. */
export interface CutStatus {
  /** Wanted profiles; none: the whole device. */
  profiles: string[];
  /** `waiting` for what `reason` says; `draining`: runs end; `refused`: it was given up. */
  state: 'waiting' | 'draining' | 'cutting' | 'done' | 'refused';
  reason?: string;
  /** From the first refusal of new work until nothing ran on what goes, and from then to the new slices, ms. */
  drainMs?: number;
  cutMs?: number;
}

/** States of a device under kernel tokens, as Dilu's algorithm 2 names them. */
export const tokenStates = ['NONE', 'EMERGENCY', 'RECOVERY', 'CONTENTION'] as const;
/** One of them. */
export type TokenState = (typeof tokenStates)[number];

/** What a process has launched so far, as kernel tokens count it, and what it may launch now. */
export interface LaunchFigures {
  /** Blocks that were launched. */
  blocks: number;
  /** Launches that had to wait. */
  waits: number;
  /** Blocks in a period of 5 ms when alone, given or learned; 0 while it is not known. */
  soloRate: number;
  /** Launch cycles (runs, steps) that its runtime has marked; of the last one how long it took, ms, and its batch size. */
  cycles: number;
  cycleMs: number;
  cycleBatch: number;
  /** Of its device or slice at the last period. */
  state: TokenState;
  /** Fraction of the SMs that its tokens of that period are worth, 0–1; absent: it has as many as it likes. */
  budget?: number;
}

/** An instance of a function, or a pre-warmer, on a device, as the agent keeps it; one of several devices is there on each. */
export interface Resident {
  container: string;
  /** When its process was started, epoch ms. */
  since?: number;
  /** All of its devices, where it has several. */
  gang?: string[];
  /** `/namespace/action`; absent for a pre-warmer that has none yet. */
  action?: string;
  /** The action's version. */
  version?: string;
  device: string;
  slice?: string;
  share: Share;
  /** Device memory that is charged for it, MiB: its cap, or what it was measured to hold if that is more. */
  memoryMiB: number;
  /** What it was measured to hold, context included, MiB; absent before the first look. */
  heldMiB?: number;
  /** How long it took to start it and to load its function, ms: the cost of ending it for its next request. */
  loadMs?: number;
  /** Its function is being loaded, so that what was given to it waits; absent: it is loaded. */
  isLoading?: true;
  /** What its processes launched, where that is counted (kernel tokens) and they have launched anything. */
  launches?: LaunchFigures;
  /** The function that it serves, and its isolation; absent for a pre-warmer that has no action yet. */
  namespace?: string;
  isolation?: GpuIsolation;
  /** Where requests run as one (`batch`): whose it serves, as a batch has one caller's rights. */
  subject?: string;
  /** Ids of the activations that run in it; one that has none may be removed to make room. */
  activations: string[];
  /** When the last one that ran in it ended, epoch ms; absent: one runs, or none ever did. */
  idleSince?: number;
}

/** A node's row in the GPU table (ClusterState table `gpus`, key: the invoker's topic). */
export interface NodeStatus {
  /** `invoker0`. */
  invoker: string;
  /** Grows with every change; a placement names the version it was decided on. */
  version: number;
  /** Epoch ms. */
  at: number;
  /** The driver's version, `550.54.14`; absent: not known. */
  driver?: string;
  devices: Device[];
  status: DeviceStatus[];
  residents: Resident[];
  /** The greatest epoch of a decider that the agent has heard of: it takes no placement of an older one. Absent: it is not told. */
  epoch?: number;
  /** The last faults that ended all clients of an MPS server, oldest first; absent: none since the agent's start. */
  faults?: SharedFault[];
  /** Activations with a GPU that the invoker has taken and not recorded. */
  inHand?: InHand[];
  /** How the operator describes it; absent: not at all. */
  labels?: Record<string, string>;
  /** How it is paid for, and per hour; absent: it is the operator's own. */
  market?: 'spot' | 'on-demand';
  pricePerHour?: number;
  /** When it will be taken away, epoch ms; absent: nothing was announced. */
  leavesAt?: number;
  /** Whether shares of running processes can be moved below their class (kernel tokens); absent: they cannot. */
  movesShares?: boolean;
  /** Whether its devices may be cut into slices: they are simulated, or `gpu.manage.mig` is on; absent: it is not told. */
  cuts?: boolean;
  /** By device: environment that makes a process of the node's own an MPS client with the whole device; absent: none can be. */
  clientEnv?: Record<string, Record<string, string>>;
}

/** An activation that an invoker has, by what placement. */
export interface InHand extends Pick<Placement, 'at' | 'epoch' | 'version'> {
  activationId: string;
}

/** The ClusterState table in which the controller that decides tells the epoch of its lease. */
export const gpuDeciderTable = 'gpuDecider';
/** The row of that table. */
export const gpuDeciderKey = 'epoch';

/** The ClusterState table of NodeStatus rows. */
export const gpuTable = 'gpus';

/** The ClusterState table of what operators want of devices: CordonRequest rows by UUID. */
export const cordonTable = 'gpuWishes';

/** What an operator wants of a device: no new work, nothing on it once what runs has ended, or work again. */
export interface CordonRequest {
  wish: 'cordon' | 'drain' | 'uncordon';
  /** Epoch ms. */
  at: number;
}

/** The ClusterState table of what the deciding controller wants of nodes: GpuDesired rows by the invoker's topic. */
export const gpuDesiredTable = 'gpuDesired';

/** Request and limit that an instance is to have, fractions of the SMs: request ≤ limit ≤ its class. */
export type DesiredShare = Pick<Share, 'smRequest' | 'smLimit'> & {
  /** Only until nothing runs in it; absent: it lasts. */
  whileBusy?: true;
};

/** The desired state of a node's instances and devices; its agent reconciles with it. */
export interface GpuDesired {
  /** Of the decider's lease: a row of an older one than the agent has heard of does not count. */
  epoch: number;
  /** Containers that end as soon as nothing runs in them, with the ms after which a run is stopped; null: runs end by themselves. */
  retire: Record<string, number | null>;
  /** By container, where its enforcer can move shares. */
  shares: Record<string, DesiredShare>;
  /** By device, the profiles of its MIG instances: `3g.20gb`; none: it is not cut. */
  geometry: Record<string, string[]>;
  /** Devices that go over to time slices where the platform has chosen MPS by itself; absent: none. */
  timeSlices?: string[];
}

/** How long a row lasts whose agent does not write it again, ms. */
export const gpuRowTtlMs = 5000;

/** Part of a device's or slice's memory that may be given away, contexts included. */
export const gpuMemoryBound = 0.95;

/** MPS clients of one device at once, up to CUDA 13.0; later drivers take 60, of fewer connections each. */
export const mpsClientLimit = 48;

/** MPS clients of a slice at once: in proportion to its SMs, and one at least. */
export function sliceClientLimit(slice: Pick<Slice, 'smCount'>, device: Pick<Device, 'smCount'>): number {
  return Math.max(1, Math.floor((mpsClientLimit * slice.smCount) / device.smCount));
}

/** What a client gets of a device. */
export interface Share {
  /** Percent of the SMs that its process was or will be started with. */
  shareClass: ShareClass;
  /** Fractions of the device's SMs, 0–1: request ≤ limit ≤ class. */
  smRequest: number;
  smLimit: number;
  /** Device memory that it may hold, context included, MiB. */
  memoryMiB: number;
  /** For kernel tokens, where they are used. */
  tokens?: TokenTerms;
}

/** What kernel tokens go by. */
export interface TokenTerms {
  /** Blocks that it launches in 5 ms when alone at 100 % of its class; absent: learned while it runs. */
  maxTokens?: number;
  /** Part by which its launch cycles may grow before neighbours give way (Dilu's η_violation); absent: it has no SLO. */
  violation?: number;
}

/** Functions that may share an MPS server with one: all, those of its namespace, none. */
export type GpuIsolation = 'shared' | 'namespace' | 'exclusive';

/** Annotation `gpu` of an action, checked and with its defaults. */
export interface GpuAnnotation {
  memoryMiB: number;
  /** From acceptance to result; absent: best effort. */
  sloMs?: number;
  class: 'inference' | 'training' | 'compute';
  /** Requests that are run together, at most. */
  batch: number;
  /** Devices that it needs. */
  gpus: number;
  /** Devices of one node that its memory may be split over, at most; absent: it is not split. */
  spans?: number;
  model?: string;
  features?: Record<string, number>;
  mpsPercent?: number;
  smRequest?: number;
  smLimit?: number;
  /** What profiling may run: a parameter object, or an action's name. */
  sample?: Record<string, unknown> | string;
  isolation: GpuIsolation;
}

/** What of it rides with an activation: all that deciding about it needs. */
export interface GpuNeed extends Omit<GpuAnnotation, 'features' | 'sample'> {
  /** Features that its owner declares, by name; `smUtil`, `dramUtil`, `l2Util` are its use of a GPU alone, fractions 0–1. */
  features?: Record<string, number>;
  /** The action's time limit, ms. */
  timeoutMs: number;
  /** Size of the activation's parameters as JSON, bytes; absent: not known. */
  inputBytes?: number;
  /** The largest class that its namespace may have; absent: any. */
  maxShareClass?: ShareClass;
  /** No policy stops it for other work: a training job that keeps no checkpoints. */
  mustNotStop?: true;
}

/** Why something was not chosen. */
export interface Rejection {
  /** What: a device, a slice, a node. */
  what: string;
  reason: string;
  /** The numbers behind it. */
  numbers: Record<string, number>;
}

/** Where a function is to run and with what. */
export interface Placement {
  invoker: string;
  /** UUIDs; more than one only where the annotation asks for several. */
  devices: string[];
  /** UUID of a MIG instance of the only device. */
  slice?: string;
  share: Share;
  /** Memory on each of the devices, in their order, MiB; absent: `share.memoryMiB` on each. */
  partsMiB?: number[];
  /** Idle residents of the devices, by container, whose memory it counts on: they go before it comes. */
  reclaim?: string[];
  /** It runs with or after others in an instance that its function has there or gets: it needs no memory of its own. */
  joins?: boolean;
  /** The batch that it was sent in: the activation that stands first in it, and its requests; absent: none. */
  together?: { of: string; requests: number };
  /** Its devices are a stand-in's. */
  simulated?: boolean;
  /** What its run was predicted to take alone at 100 %, and as it is placed, loading excluded, ms; absent: it was never measured. */
  predicted?: { soloMs: number; runMs: number };
  /** Measured times of its function alone on this kind of GPU; absent: none is measured. */
  alone?: AloneTimes;
  /** When it was decided, epoch ms. */
  at: number;
  /** Of the decider's lease. */
  epoch: number;
  /** Of the node's status that it was decided on. */
  version: number;
}

/** An activation that waits for a GPU. */
export interface GpuQueued {
  activationId: string;
  action: string;
  namespace: string;
  /** From 1, in the order of their turn. */
  position: number;
  waitedMs: number;
  /** Absent: best effort, from the beginning or since its SLO cannot be met any more. */
  sloMs?: number;
  memoryMiB: number;
  gpus: number;
  /** Why agents gave it back so far. */
  refusals: string[];
  /** Why it was put nowhere when that was last decided. */
  rejected: Rejection[];
}

/** Annotation `gpu` of an activation record. Times in ms. */
export interface GpuRecord {
  /** The first device where there are several. */
  device: string;
  slice?: string;
  /** The class that its process was started with, fraction 0–1. */
  share: number;
  /** From acceptance to placement. */
  queueMs: number;
  /** The time that injection into a warm process took. */
  injectMs?: number;
  /** What its run was predicted to take without loading; absent where its function was never measured. */
  predictedMs?: number;
  /** What it took, loading included. */
  actualMs: number;
  /**
   * 1 − solo / co-located, loading excluded; only where others used the GPU during the run, and its time alone with inputs of
   * this size was measured.
   */
  degradation?: number;
  /** Times its usual time alone with inputs of this size, loading excluded; only where nothing else used the GPU during the run. */
  timesUsual?: number;
  /** Size of its input as the function has reported it; absent: it reported none. */
  inputSize?: number;
  start: 'cold' | 'prewarmed' | 'injected' | 'warm';
  /** Requests that ran together with it, itself included. */
  batch?: number;
  simulated?: boolean;
}

/** Annotation `coldStart` of a run with a GPU that loaded its code: known parts of its start (SMORE thesis, equation 3.12), ms. */
export interface ColdStartRecord {
  /** From acceptance until the code was loaded, waits between the parts included. */
  totalMs: number;
  /** From acceptance to placement. */
  queueMs: number;
  /** Making the container until its process starts: packages, access to the GPU, sandbox. Absent if it was ready. */
  allocMs?: number;
  /** From the start of the process until the runtime says hello; absent if it was ready, or speaks HTTP. */
  runtimeMs?: number;
  /** Injection into a warm process. */
  injectMs?: number;
  /** Modules of annotation `warm` that the runtime loaded after its hello. */
  importMs?: number;
  /** The function's code, with the modules that it imports itself. */
  codeMs?: number;
  /** The function that annotation `warm` names as `entry`. */
  modelMs?: number;
}

/** The ClusterState table of registered and started workloads, by id. */
export const workloadTable = 'gpuWorkloads';

/** A long-running process that is not a function: registered, started by us, or found on a device. */
export interface Workload {
  id: string;
  name: string;
  origin: 'registered' | 'started' | 'discovered';
  invoker: string;
  device: string;
  pid?: number;
  /** When that started, in the kernel's ticks since the boot (proc(5), starttime): numbers of processes are used again. */
  processStart?: number;
  /** Its process ended without a deregistration: its registration is to be removed. */
  ended?: boolean;
  /** Epoch ms. */
  since: number;
  memoryMiB?: number;
  /** Percent of the SMs that one which was started may use; absent: all. */
  mpsPercent?: number;
  /** How much slower it may get, fraction 0–1. */
  maxDegradation: number;
  /** Rate alone on the device, in a unit of its own: steps or samples per second; absent: not known. */
  baselineRate?: number;
  /** The source of the baseline; absent, with a baseline: declared. */
  baselineFrom?: 'declared' | 'measured';
  /** The declared baseline, if a measured one has replaced it because reports were far above it. */
  declaredBaselineRate?: number;
  /** The last reported rate, in the same unit, and the time of that report, epoch ms; absent: never reported. */
  rate?: number;
  reportedAt?: number;
  /** Median of the last rates that were reported while no function ran on the device. */
  aloneRate?: number;
  /** Estimated degradation by the functions that run on the device, fraction 0–1; absent: none runs, or reports tell. */
  estimatedDegradation?: number;
  /** The source of the workload's demand for SMs: the chip's counters, or the share that the workload may use. */
  estimatedFrom?: 'activity' | 'shares';
  namespace?: string;
  guard?: WorkloadGuard;
  command?: string;
  /** Declared figures by name, as of the annotation of a function: absent, as each name, if it is not told. */
  features?: Record<string, number>;
  /** Figures by name that were measured while it computed alone on its device; absent: never seen. */
  measuredFeatures?: Record<string, number>;
}
