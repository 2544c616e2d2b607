import type { LargeCode } from '@gpuwhisk/common/entities/large-code';
import type { Share } from '@gpuwhisk/common/gpu';
import type { TrainingRun } from '@gpuwhisk/common/training';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import type { CudaContextKept } from '@gpuwhisk/common/prewarmer';

/** The GPU resources of a container, fixed from its start to its end. */
export interface GpuGrant {
  /** UUIDs in the order in which the container's processes see the devices. The share holds on each device in full. */
  devices: readonly string[];
  /** Memory on each of the devices, MiB; absent: that of the share. */
  partsMiB?: readonly number[];
  /** UUID of a MIG instance of the only device. */
  slice?: string;
  share: Share;
}

/** Requirements on a container. Containers with equal specs are interchangeable before init. */
export interface ContainerSpec {
  /** Resolved runtime kind, such as `nodejs:20`. */
  kind: string;
  memoryMiB: number;
  /** Runs that the container takes at once; above 1 the runtime gets `__OW_ALLOW_CONCURRENT=true`. */
  concurrency: number;
  /**
   * Packages that must be importable: of Python those of annotation `requirements`, sorted; of Node.js the key of `npm`. Empty for
   * none.
   */
  requirements: readonly string[];
  /** The npm packages of an archive; absent without any. */
  npm?: NpmPackages;
  /** Modules that are loaded before the action's code, by annotation `warm` or learned; empty for none. */
  imports: readonly string[];
  /** Set if `imports` are learned ones: containers that a function waits for do not import them. */
  learned?: LearnedFor;
  /** Whether a CUDA context is created before the action's code is loaded (annotation `warm`). */
  cuda: boolean;
  /** Absent: the container sees no GPU. */
  gpu?: GpuGrant;
  /** The namespace that `requirements` are installed for; absent without any. */
  installsFor?: string;
  /** The only run that the container is for; absent unless that is a training job's. */
  training?: TrainingSpec;
}

/** The files that npm installs packages from, or why it cannot. */
export type NpmFiles = { manifest: string; lock?: string } | { problem: string };

/** The npm packages that an action's archive names and does not bring. */
export interface NpmPackages {
  /** The same for equal packages. */
  key: string;
  /** Reads the texts of package.json and package-lock.json from the action's code. Rejects if the store cannot read it. */
  files(): Promise<NpmFiles>;
}

/** The spec without learned imports: a function that waits for its container loads by itself just what it imports. */
export function withoutLearned({ learned, ...spec }: ContainerSpec): ContainerSpec {
  return learned === undefined ? spec : { ...spec, imports: [] };
}

/** For which functions imports were learned. */
export interface LearnedFor {
  namespace: string;
  /** Whether further modules make no difference to the function: its imports are complete, and come before all else. */
  takesMore: boolean;
  /** Time that a start saves, ms. */
  savesMs: number;
}

/** What a container of a training job needs to know of its run. */
export interface TrainingSpec extends Pick<TrainingRun, 'job' | 'attempt' | 'members' | 'rendezvousMs'> {
  /** Bound on the job's checkpoint folder, which the container sees, MiB; undefined: the job has none. */
  checkpointMiB: number | undefined;
}

/** A container for one run at a time, with nothing loaded ahead. */
export function bareSpec(kind: string, memoryMiB: number): ContainerSpec {
  return { kind, memoryMiB, concurrency: 1, requirements: [], imports: [], cuda: false };
}

/** The `/init` value. */
export interface InitRequest {
  name: string;
  main: string;
  /** Source text, or base64 of an archive when `binary`. Absent for an image that carries its code. */
  code?: string;
  /** Code of more than 1 MiB, in place of `code`; it is given up once the runtime has it. */
  large?: LargeCode;
  binary: boolean;
  /** Name of a function that is called once after the code is loaded (annotation `warm`). */
  entry?: string;
  /** SHA-256 of the code (of the archive when `binary`), hexadecimal; checked by runtimes that can unload. */
  digest?: string;
  /** Environment of the action: init parameters and `__OW_*`. */
  env: Record<string, string>;
}

/** The `/run` body. */
export interface RunRequest {
  value: JsonObject | JsonValue[];
  namespace: string;
  /** `/ns/pkg/action`. */
  action_name: string;
  action_version: string;
  activation_id: string;
  transaction_id: string;
  /** Epoch ms, as a decimal string. */
  deadline: string;
  api_key?: string;
  /** The span of the run, as W3C's Trace Context writes it; absent: it is not traced. */
  traceparent?: string;
  tracestate?: string;
  /** Number of requests in `value`, in decimal; the result has an entry for each. Absent: `value` is one request's. */
  batch?: string;
}

/** The container ended before an answer came. */
export interface LostOutcome {
  type: 'lost';
  oomKilled: boolean;
  /** Of a container with a GPU that ran out of host memory: its limit, and the most that it held, if known, MiB. */
  memory?: { limitMiB: number; usedMiB?: number };
}

/** How an init or a run ended. */
export type CallOutcome =
  /** Success of an init, an unload or a check. The rest: of an init, if the runtime reports it. */
  | { type: 'ok'; loadTimes?: LoadTimes; imports?: readonly ImportedModule[]; restores?: true }
  /**
   * Run: the result is an object or array; `bytes` is its length as the runtime sent it. `inputSize`: the size of its input that
   * the function has reported, if it has.
   */
  | { type: 'result'; result: JsonObject | JsonValue[]; bytes: number; inputSize?: number }
  /** Run: the result is longer than `maxResultBytes`; `head` holds its first `truncationBytes`. */
  | { type: 'oversize'; head: string; bytes: number }
  /** The runtime answered with an error: `error` is the message, if there is one, and `body` the raw answer. */
  | { type: 'error'; error?: string; body: string }
  | LostOutcome
  | { type: 'timeout' }
  /** The runtime is shutting down (its 503): the run needs another container. */
  | { type: 'unavailable' };

/** Times of the parts of an init, ms, as the runtime reports them. */
export interface LoadTimes {
  /** Modules of annotation `warm` that were loaded after the hello. */
  importMs?: number;
  /** The action's code. */
  codeMs?: number;
  /** The function that annotation `warm` names as `entry`. */
  entryMs?: number;
}

/** A module of a shared set that code imported while it was loaded. */
export interface ImportedModule {
  name: string;
  /** Time of the import, modules that it imported itself included, ms. */
  ms: number;
}

/** Where the modules are that learned imports may name. */
export interface SharedModules {
  /** How names stand for files. */
  language: 'python' | 'nodejs';
  /** Folders of the host that no action can write. */
  folders: readonly string[];
}

/** The problem that an outcome other than `ok` reports; undefined for `ok`. */
export function problemOf(outcome: CallOutcome): string | undefined {
  if (outcome.type === 'ok') return undefined;
  return outcome.type === 'error' ? (outcome.error ?? outcome.body) : outcome.type;
}

/** Bounds of one init, run, unload or check. */
export interface CallLimits {
  timeoutMs: number;
  /** Bytes of logs kept; 0 collects none. */
  logLimitBytes: number;
  /** Bytes of a result that are accepted. */
  maxResultBytes: number;
  /** Bytes that are kept of a longer result. */
  truncationBytes: number;
  /** The namespace that the function runs for; absent where the platform itself runs something. */
  forNamespace?: string;
  /** Takes the bytes of a run's result in place of its outcome, whose `result` is empty then: those that are too large to be parsed at once. */
  onResult?: (bytes: Buffer) => void;
  /** Called with each report of the run's progress, JSON; only the runs of training jobs have reports. */
  onProgress?: (report: string) => void;
}

/** A call into a container: its outcome, and its log lines with OpenWhisk's prefixes. `logs` never rejects. */
export interface Call {
  outcome: Promise<CallOutcome>;
  /** Lines since the previous call's end; the lines of a successful init come with the first run. */
  logs: Promise<string[]>;
  /** Asks a run to end by itself; set for runs with `onProgress`. */
  stop?: () => void;
}

/** One sandbox with a runtime in it: the unit of the pool. */
export interface Container {
  readonly id: string;
  readonly spec: ContainerSpec;
  /** Time of creation, epoch ms. */
  readonly sinceMs: number;
  /** Id of the MSContainer that holds the container; undefined if the container shares its PID namespace with none. */
  readonly msContainer: string | undefined;
  /** The runtime's process id as functions see it; undefined if the runtime does not report the id. */
  readonly pid: number | undefined;
  /** How its CUDA context is kept from function to function; undefined if it has none, or its runtime does not tell. */
  readonly cudaContext?: CudaContextKept | undefined;
  /** Why no template could be made of its process; undefined if one was made, or none was asked for. */
  readonly unfit?: string | undefined;
  /** Whether its process is a copy of a template, which has its modules. */
  isCopy?: boolean;
  /** Time of a load that it saves as a copy of the loaded function, ms; undefined if it is none. An init goes on from there. */
  restoredMs?: number;
  /** Time from the start of its process to the runtime's hello, ms; undefined if the runtime says none. */
  readonly runtimeMs?: number | undefined;
  /** The modules that learned imports may name; undefined if none are learned from it. */
  readonly sharedModules?: SharedModules | undefined;
  /** How often an action was unloaded from it. */
  readonly unloads?: number;
  /** The host's id of the first process, the ancestor of all others; undefined without processes. */
  readonly hostPid: number | undefined;
  /** Loads code; once only. The logs of a successful init are empty: those lines come with the first run. */
  init(request: InitRequest, limits: CallLimits): Call;
  run(request: RunRequest, limits: CallLimits): Call;
  /** The lines that have been printed since the previous call's end, from a place on: the beginning of the next call's `logs`. */
  printedSince(from: number): string[];
  /** Whether the runtime takes several requests as one run. */
  readonly canBatch: boolean;
  /** Whether the runtime ends a late run by itself soon after the deadline, and can be unloaded then. */
  readonly endsLate: boolean;
  /** Whether the runtime can unload an action, as its hello said. */
  readonly canUnload: boolean;
  /**
   * Restores the state before init, so that another action of the same namespace can be loaded; `thorough` verifies more and
   * takes longer. The outcome is `ok`, or `error` with the remaining state: the container must not be used again then.
   * Refused without `canUnload` and during runs.
   */
  unload(thorough: boolean, limits: CallLimits): Call;
  /**
   * Checks the health of a container that can unload: `ok`, or `error` with the problem. Printed lines stay for the next
   * call. Refused without `canUnload` and during runs; an init may be sent right after the check.
   */
  check(limits: CallLimits): Call;
  /** Freezes all processes of an idle container. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /**
   * Sets whether the container's processes yield processors to other containers, as while it is readied ahead of need. Has
   * no effect if the host has no means for this. Never rejects.
   */
  giveWay(gives: boolean): Promise<void>;
  /** Processor time of all processes so far, ms; undefined if the time is not known. Never rejects. */
  processorMs(): Promise<number | undefined>;
  /** Whether `resize` to a memory limit will not end it for what its processes hold now. */
  fits?(memoryMiB: number): boolean;
  /** Sets another memory limit, which its spec has then; false, with nothing changed, if that failed. */
  resize?(memoryMiB: number): boolean;
  /** Real memory of all processes, MiB; undefined if it is not known. Never rejects. */
  memoryMiB?(): Promise<number | undefined>;
  /** Ends the processes and frees the container's resources; idempotent. Calls under way end as `lost`. */
  destroy(): Promise<void>;
  /**
   * Total time of the runs so far, ms, by the runtime's own clock if the runtime reports times. A run counts once its logs
   * are complete.
   */
  readonly busyMs: number;
  /** Resolves when the processes have ended, for whatever reason. */
  readonly exited: Promise<void>;
}

/** How well a prewarmed container's spec serves a wanted one: with the same modules, more, some, or not at all. */
export type Match = 'exact' | 'superset' | 'subset' | 'none';

/** Lines of text about the host, from the start of a factory. */
export interface StartReport {
  /** Isolation measures that the host forbids, with the consequence of each. */
  weaknesses: string[];
  /** Other services to functions that the host lacks. */
  notes: string[];
}

/** Isolation measures are missing or could not be tried; `message` names them and the remedy. */
export class IsolationError extends Error {
  override name = 'IsolationError';
}

/** Makes the containers of one implementation. */
export interface ContainerFactory {
  /**
   * Prepares the host and removes leftovers of earlier processes. Rejects with IsolationError if the host's isolation cannot
   * be determined.
   */
  start(): Promise<StartReport>;
  /** Whether the factory can make containers of this kind. */
  supports(kind: string): boolean;
  /**
   * A started container whose runtime has said hello. With `ahead`, no activation waits for the container, which yields
   * processors to others (giveWay). Rejects with ProvisioningError.
   */
  create(spec: ContainerSpec, ahead?: boolean): Promise<Container>;
  /**
   * As create, with the spec's learned imports loaded, where that takes no longer than a start without them. Resolves with
   * undefined where it would, or was tried and failed. Absent: it always would.
   */
  copy?(spec: ContainerSpec, ahead?: boolean): Promise<Container | undefined>;
  /** As create with `ahead`, for a container that is not yet bound to an action (a stem cell). */
  prewarm(spec: ContainerSpec): Promise<Container>;
  match(prewarmed: ContainerSpec, wanted: ContainerSpec): Match;
  /** Whether containers get the npm packages of their spec; absent: archives must bring theirs. */
  readonly installsNpm?: boolean;
  /**
   * Loads a function in a sandbox of its own, and keeps its state. Rejects with an Error that says why there is no such state, or
   * why copies would not be the same. Absent: the factory cannot do so.
   */
  snapshot?(wanted: SnapshotWanted): Promise<FunctionSnapshot>;
  /** Destroys every container. */
  close(): Promise<void>;
}

/** Memory of the sandbox that makes a snapshot, in that of its function: it holds the function and the snapshot. */
export const makingTimes = 2;

/** A function that is loaded for its snapshot. */
export interface SnapshotWanted {
  spec: ContainerSpec;
  /** The namespace that it runs for. */
  namespace: string;
  /** Without anything of one activation or one caller. */
  init: InitRequest;
}

/** The state of a function right after its code was loaded and before its first run, in memory. */
export interface FunctionSnapshot {
  readonly memoryMiB: number;
  /** A container that is a copy, for this function only. `ahead`: as in create. Rejects with ProvisioningError. */
  copy(ahead: boolean): Promise<Container>;
  /** Frees the memory, once no copy uses it. */
  remove(): Promise<void>;
}

/** A container could not be made. `message` is the reason, for the activation's log; `told` is the activation's error. */
export class ProvisioningError extends Error {
  override name = 'ProvisioningError';
  constructor(
    message: string,
    readonly told = 'Failed to provision resources to run the action.',
    /** Whether the action's own settings caused it, rather than the platform. */
    readonly byAction = false,
    /** Whether another place could have the container, so that the placement is to be decided again. */
    readonly elsewhere = false,
  ) {
    super(message);
  }
}

/**
 * How well a container made for `prewarmed` serves `wanted`. Only modules that were loaded ahead may differ: with a subset
 * of the wanted imports, the rest are loaded at init. Learned ones serve the namespace they were learned for, and if the
 * factory `resizes` containers, actions of any memory. A training job's container serves nothing else.
 */
export function matchSpecs(prewarmed: ContainerSpec, wanted: ContainerSpec, resizes = false): Match {
  const anySize = resizes && prewarmed.learned !== undefined && wanted.learned !== undefined;
  const same =
    prewarmed.kind === wanted.kind &&
    (anySize || prewarmed.memoryMiB === wanted.memoryMiB) &&
    prewarmed.concurrency === wanted.concurrency &&
    prewarmed.requirements.join(' ') === wanted.requirements.join(' ');
  if (!same || (prewarmed.cuda && !wanted.cuda)) return 'none';
  if (prewarmed.training !== undefined || wanted.training !== undefined) return 'none';
  if (!isSameGrant(prewarmed.gpu, wanted.gpu)) return 'none';
  if (prewarmed.learned !== undefined && prewarmed.learned.namespace !== wanted.learned?.namespace) return 'none';
  const [had, imports] = [new Set(prewarmed.imports), new Set(wanted.imports)];
  if (prewarmed.imports.every((name) => imports.has(name))) {
    return had.size === imports.size && prewarmed.cuda === wanted.cuda ? 'exact' : 'subset';
  }
  const isMore = prewarmed.learned !== undefined && wanted.learned?.takesMore === true;
  return isMore && wanted.imports.every((name) => had.has(name)) ? 'superset' : 'none';
}

/**
 * Whether two grants have the same devices, class and memory limit, which a process keeps from its start. A larger class
 * would take promised capacity from neighbours; a smaller memory limit would make the function fail.
 */
function isSameGrant(had: GpuGrant | undefined, wanted: GpuGrant | undefined): boolean {
  if (had === undefined || wanted === undefined) return had === wanted;
  const { shareClass, memoryMiB } = wanted.share;
  const isSame = had.share.shareClass === shareClass && had.share.memoryMiB === memoryMiB;
  const areSameParts = had.partsMiB?.join(' ') === wanted.partsMiB?.join(' ');
  return isSame && areSameParts && had.devices.join(' ') === wanted.devices.join(' ') && had.slice === wanted.slice;
}

/** A call that begins later. Where it does not, its outcome rejects, and it has no logs. */
export function later(call: Promise<Call>): Call {
  return {
    outcome: call.then(({ outcome }) => outcome),
    logs: call.then(
      ({ logs }) => logs,
      () => [],
    ),
  };
}
