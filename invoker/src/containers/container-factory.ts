import type { Share } from '@gpuwhisk/common/gpu';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';

/** What a container gets of GPUs, from its start to its end. */
export interface GpuGrant {
  /** UUIDs, in the order in which its processes see them; of each it has all that the share says. */
  devices: readonly string[];
  /** UUID of a MIG instance of its only device. */
  slice?: string;
  share: Share;
}

/** What a container must be. Two containers with equal specs are interchangeable before init. */
export interface ContainerSpec {
  /** Resolved runtime kind, such as `nodejs:20`. */
  kind: string;
  memoryMiB: number;
  /** Runs at once within the container; above 1 the runtime gets `__OW_ALLOW_CONCURRENT=true`. */
  concurrency: number;
  /** Python packages that must be importable (annotation `requirements`), sorted; empty for none. */
  requirements: readonly string[];
  /** Modules that are loaded before the action's code (annotation `warm`), sorted; empty for none. */
  imports: readonly string[];
  /** Whether a CUDA context is asked for before the action's code is there (annotation `warm`). */
  cuda: boolean;
  /** Absent: it sees no GPU. */
  gpu?: GpuGrant;
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
  binary: boolean;
  /** A function that is called once when the code is loaded (annotation `warm`). */
  entry?: string;
  /** SHA-256 of the code (of the archive when `binary`), hexadecimal: for a runtime that can unload to check. */
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
  /** How many requests `value` holds, in decimal, each with an entry of its own in the result; absent: it is one request's. */
  batch?: string;
}

/** How an init or a run ended. */
export type CallOutcome =
  /** Init: loaded; unload: as before init; check: in order. */
  | { type: 'ok' }
  /** Run: an object or array; `bytes` is its length as the runtime sent it. */
  | { type: 'result'; result: JsonObject | JsonValue[]; bytes: number }
  /** Run: longer than `maxResultBytes`; `head` is its beginning, `truncationBytes` of it. */
  | { type: 'oversize'; head: string; bytes: number }
  /** The runtime answered with an error: `error` is its message, if it gave one, `body` the raw answer. */
  | { type: 'error'; error?: string; body: string }
  /** The container went away before it answered. */
  | { type: 'lost'; oomKilled: boolean }
  | { type: 'timeout' }
  /** The runtime is shutting down (its 503): run elsewhere. */
  | { type: 'unavailable' };

/** What an outcome other than `ok` says. */
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
  /** Bytes that are kept of a longer one. */
  truncationBytes: number;
  /** The namespace that the function runs for; absent where the platform itself runs something. */
  forNamespace?: string;
}

/** An outcome at once, and the log lines (with OpenWhisk's prefixes) once they are collected; logs never rejects. */
export interface Call {
  outcome: Promise<CallOutcome>;
  /** Lines that were written since the previous call ended; what a successful init wrote comes with the first run. */
  logs: Promise<string[]>;
}

/** One sandbox with a runtime in it: the unit of the pool. */
export interface Container {
  readonly id: string;
  readonly spec: ContainerSpec;
  /** When it was made, epoch ms. */
  readonly sinceMs: number;
  /** The MSContainer that it lies in with others; undefined where it shares its processes' namespace with none. */
  readonly msContainer: string | undefined;
  /** The id of its runtime's process as its functions see it; undefined where the runtime does not tell. */
  readonly pid: number | undefined;
  /** The host's id of its first process, which all others come from; undefined where it has none. */
  readonly hostPid: number | undefined;
  /** Loads code; once only. Its logs are empty if it succeeded: those lines come with the first run. */
  init(request: InitRequest, limits: CallLimits): Call;
  run(request: RunRequest, limits: CallLimits): Call;
  /** Whether its runtime takes several requests as one run. */
  readonly canBatch: boolean;
  /** Whether its runtime ends a run by itself soon after its deadline, and can be unloaded then. */
  readonly endsLate: boolean;
  /** Whether its runtime can forget an action: it said so when it started. */
  readonly canUnload: boolean;
  /**
   * Makes it what it was before init, so that another action of the same namespace can be loaded; `thorough` proves more
   * and takes longer. Outcome `ok`, or `error` with what is left: the container is of no more use then. Refused where
   * it cannot, and while it runs.
   */
  unload(thorough: boolean, limits: CallLimits): Call;
  /**
   * Asks a container that can unload whether it is in order: `ok`, or `error` with what is not. What it printed stays for
   * the next call. Refused where it cannot unload, and while it runs; an init may be sent right behind it.
   */
  check(limits: CallLimits): Call;
  /** Stops all its processes from running; idle containers only. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /**
   * Whether its processes give way to those of other containers on the processors: while it is readied ahead of need. Has
   * no effect where the host has nothing for it. Never rejects.
   */
  giveWay(gives: boolean): Promise<void>;
  /** Processor time of all its processes so far, ms; undefined where that cannot be told. Never rejects. */
  processorMs(): Promise<number | undefined>;
  /** Ends its processes and frees all it held; idempotent. Calls under way end as `lost`. */
  destroy(): Promise<void>;
  /**
   * Time that its runs took so far, all together, ms; by the runtime's own clock where it tells, and a run counts once
   * its logs are there.
   */
  readonly busyMs: number;
  /** Resolves when its processes have ended, for whatever reason. */
  readonly exited: Promise<void>;
}

/** How well a prewarmed container's spec serves a wanted one. */
export type Match = 'exact' | 'subset' | 'none';

/** Plain lines about the host, from the start of a factory. */
export interface StartReport {
  /** Measures of isolation that the host forbids, and what functions can do for lack of each. */
  weaknesses: string[];
  /** Other services to functions that the host lacks. */
  notes: string[];
}

/** Measures of isolation are missing, or could not be tried; `message` says which and what to do. */
export class IsolationError extends Error {
  override name = 'IsolationError';
}

/** Makes containers of some sort. */
export interface ContainerFactory {
  /** Readies the host and removes what an earlier run left. Rejects with IsolationError if it cannot tell what the host allows. */
  start(): Promise<StartReport>;
  /** Whether containers of this kind can be made here. */
  supports(kind: string): boolean;
  /**
   * A started container whose runtime answered hello. `ahead`: no activation waits for it, so that it gives way to others (giveWay).
   * Rejects with ProvisioningError.
   */
  create(spec: ContainerSpec, ahead?: boolean): Promise<Container>;
  /** As create, ahead of need and not yet bound to an action (a stem cell): it gives way. */
  prewarm(spec: ContainerSpec): Promise<Container>;
  match(prewarmed: ContainerSpec, wanted: ContainerSpec): Match;
  /** Destroys every container. */
  close(): Promise<void>;
}

/** A container could not be made; `message` says why, in the log of the activation, `told` is the activation's error. */
export class ProvisioningError extends Error {
  override name = 'ProvisioningError';
  constructor(
    message: string,
    readonly told = 'Failed to provision resources to run the action.',
    /** Whether the action's own settings caused it, rather than the platform. */
    readonly byAction = false,
    /** Whether it could be had in another place, so that where to run is to be decided again. */
    readonly elsewhere = false,
  ) {
    super(message);
  }
}

/**
 * How well a container made for `prewarmed` serves `wanted`. Only what was loaded ahead may differ: a subset of the
 * wanted imports still has to load the rest.
 */
export function matchSpecs(prewarmed: ContainerSpec, wanted: ContainerSpec): Match {
  const same =
    prewarmed.kind === wanted.kind &&
    prewarmed.memoryMiB === wanted.memoryMiB &&
    prewarmed.concurrency === wanted.concurrency &&
    prewarmed.requirements.join(' ') === wanted.requirements.join(' ');
  if (!same || (prewarmed.cuda && !wanted.cuda)) return 'none';
  const imports = new Set(wanted.imports);
  if (!isSameGrant(prewarmed.gpu, wanted.gpu) || !prewarmed.imports.every((name) => imports.has(name))) return 'none';
  const isExact = prewarmed.imports.length === imports.size && prewarmed.cuda === wanted.cuda;
  return isExact ? 'exact' : 'subset';
}

/**
 * A process keeps the devices, the class and the memory limit that it was started with: in one of a larger class a function
 * would take from its neighbours what they were promised, in one of a smaller memory limit fail.
 */
function isSameGrant(had: GpuGrant | undefined, wanted: GpuGrant | undefined): boolean {
  if (had === undefined || wanted === undefined) return had === wanted;
  const { shareClass, memoryMiB } = wanted.share;
  const isSame = had.share.shareClass === shareClass && had.share.memoryMiB === memoryMiB;
  return isSame && had.devices.join(' ') === wanted.devices.join(' ') && had.slice === wanted.slice;
}
