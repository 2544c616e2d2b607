import type { Device, LaunchFigures, Share } from '@gpuwhisk/common/gpu';

/** Settings for the start of a process under a share. */
export interface ClientSettings {
  env: Record<string, string>;
  /** Paths of the host that the sandbox must mount at the same place; `write` is needed to connect to sockets there. */
  binds: { path: string; write: boolean }[];
  /** Host user that the process must run as, if the enforcer serves only one user. */
  uid?: number;
}

/** A process that the enforcer serves. */
export interface ShareClient {
  /** The host's id of the process. */
  pid: number;
  device: string;
  slice?: string;
}

/** Bound on the share of every process that connects, whatever the process requests. */
export interface ShareCeiling {
  /** Percent of the SMs. */
  percent: number;
  /** Device memory of one process, MiB. */
  memoryMiB: number;
}

/** What the driver tells of a device's use. */
export interface DeviceUse {
  /** Processes that are in no container of the platform, with the slice that they use. */
  others: readonly { pid: number; slice?: string }[];
  /** Memory in use that no listed process holds, MiB; undefined if some process's memory is not told. */
  unlistedMiB: number | undefined;
}

/** A share was refused or the enforcer does not answer; `message` is for an operator. */
export class ShareError extends Error {
  override name = 'ShareError';
}

/** Where a device's shares are enforced, and for an operator how, or why not. */
export interface Sharing {
  /** Whether processes share the device side by side, each held to its share; otherwise they take turns. */
  isShared: boolean;
  /** A clause, without a full stop. */
  how: string;
  /** Whether giveUp() applies: processes share it by a daemon that the platform has chosen to start. */
  mayGiveUp?: true;
}

/** Gives processes their share of a device's SMs and memory, and holds them to it. All methods reject with ShareError. */
export interface ShareEnforcer {
  readonly name: 'mps' | 'tokens' | 'mps+tokens' | 'none';
  /** Whether the share of a running process can be changed. */
  readonly adjusts: boolean;
  /**
   * Prepares a device or slice: its daemon runs and answers when this resolves. Idempotent: a daemon that has ended is
   * started again; its former clients are lost.
   */
  open(device: Device, slice?: string): Promise<void>;
  /** Settings for a process to be started. The share's class is the process's ceiling for its lifetime. */
  settings(device: Device, share: Share, slice?: string): Promise<ClientSettings>;
  /**
   * Settings for a process that uses several whole devices, which are prepared for use together. With MPS no other process
   * may be a client of any of them until the process has ended. `partsMiB`: memory on each of them; absent: that of the share.
   */
  gangSettings(devices: readonly Device[], share: Share, partsMiB?: readonly number[]): Promise<ClientSettings>;
  /**
   * Bounds every process that connects from now on by `ceiling`, in the enforcer's server: a client's environment can only
   * lower its share. Connected processes keep their share. Does nothing if the operator runs the daemon. Absent if no server
   * enforces shares.
   */
  limitClients?(device: string, slice: string | undefined, ceiling: ShareCeiling): Promise<void>;
  /**
   * Rejects unless the process, which has its CUDA context, is under its share: with MPS a process that does not find its
   * daemon silently gets the whole device. Called once for each process before it serves.
   */
  confirm(client: ShareClient): Promise<void>;
  /**
   * Changes the request and limit of a running process, below its class. `forAnother`: the process runs another function
   * from now on, so that measurements of the previous one are discarded. Rejects if `adjusts` is false.
   */
  adjust(client: ShareClient, share: Share, forAnother?: boolean): Promise<void>;
  clients(device: string, slice?: string): Promise<ShareClient[]>;
  /** A client's counted launches; absent if launches are not counted. */
  launches?(client: ShareClient): Promise<LaunchFigures>;
  /** Ends a client's use of the device; its process gets an error at its next call. */
  terminate(client: ShareClient): Promise<void>;
  /** Whether a fatal fault has ended the work of all clients of a device or slice. Absent: clients have faults of their own. */
  isFaulted?(device: string, slice?: string): Promise<boolean>;
  /** The enforcer's problem on a device or slice; undefined if there is none. */
  check(device: string, slice?: string): Promise<string | undefined>;
  /** How an opened device is shared; undefined before open(). Absent: every opened device as `name` says. */
  sharing?(device: string): Sharing | undefined;
  /**
   * Whether work that is not the enforcer's uses a device past it; undefined if that cannot be told. `seen`: the processes
   * that the driver lists, and all memory in use there. Absent where others cannot use a device, or do not matter.
   */
  foreignWork?(device: string, seen: DeviceUse): Promise<string | undefined>;
  /** Ends the daemon of a device without clients; processes take turns from then on. Rejects while it has clients. */
  giveUp?(device: string, why: string): Promise<void>;
  /** Has the next open() of a device that was given up decide again how it is shared; it has no clients. */
  reconsider?(device: string): void;
  /**
   * Ends the daemon that open() started for a device or slice, so that it can be cut again. Does nothing if it is not open.
   * Rejects while it has clients.
   */
  shut(device: string, slice?: string): Promise<void>;
  /** Ends all daemons that open() started; clients must have ended. */
  close(): Promise<void>;
}
