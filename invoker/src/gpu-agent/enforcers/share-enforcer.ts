import type { Device, LaunchFigures, Share } from '@gpuwhisk/common/gpu';

/** What a process must be started with to get its share. */
export interface ClientSettings {
  env: Record<string, string>;
  /** Paths of the host that its sandbox must see, at the same place; `write`: to connect to a socket there needs it. */
  binds: { path: string; write: boolean }[];
  /** User that the process must run as on the host, where the enforcer serves only one. */
  uid?: number;
}

/** A process that the enforcer serves. */
export interface ShareClient {
  /** The host's id of the process. */
  pid: number;
  device: string;
  slice?: string;
}

/** The most that a process which connects may get, whatever it asks for. */
export interface ShareCeiling {
  /** Percent of the SMs. */
  percent: number;
  /** Device memory of one process, MiB. */
  memoryMiB: number;
}

/** A share was refused or the enforcer does not answer; `message` is for an operator. */
export class ShareError extends Error {
  override name = 'ShareError';
}

/** Gives processes their share of a device's SMs and memory, and holds them to it. Everything rejects with ShareError. */
export interface ShareEnforcer {
  readonly name: 'mps' | 'tokens' | 'mps+tokens' | 'none';
  /** Whether the share of a process that runs can be moved. */
  readonly adjusts: boolean;
  /**
   * Readies a device (or one slice of it): its daemon runs and answers. Idempotent: a daemon that has died since is
   * started again; the clients that it had are lost.
   */
  open(device: Device, slice?: string): Promise<void>;
  /** For a process yet to be started. The share's class is its ceiling from then on. */
  settings(device: Device, share: Share, slice?: string): Promise<ClientSettings>;
  /**
   * The same for a process that uses several whole devices, which are readied to be used together: with MPS no other process
   * may be a client of any of them, from then on until the process has ended.
   */
  gangSettings(devices: readonly Device[], share: Share): Promise<ClientSettings>;
  /**
   * Holds every process that connects from now on to at most `ceiling`, on the enforcer's own side: a client's environment
   * can only lower it. Those that are connected keep what they have. Nothing is done where the operator runs the
   * daemon. Absent where shares are not held by a server.
   */
  limitClients?(device: string, slice: string | undefined, ceiling: ShareCeiling): Promise<void>;
  /**
   * Rejects unless the process, which has made its CUDA context by now, is under its share: with MPS a process that does
   * not find its daemon gets the whole device without a word. To be asked once for each process before it serves.
   */
  confirm(client: ShareClient): Promise<void>;
  /**
   * Moves the request and limit of a process that runs, below its class. `forAnother`: it runs another function from now on,
   * so that what was learned of the one before is forgotten. Rejects where `adjusts` is false.
   */
  adjust(client: ShareClient, share: Share, forAnother?: boolean): Promise<void>;
  clients(device: string, slice?: string): Promise<ShareClient[]>;
  /** What a client has launched; absent if launches are not counted. */
  launches?(client: ShareClient): Promise<LaunchFigures>;
  /** Ends a client's use of the device; its process gets an error at its next call. */
  terminate(client: ShareClient): Promise<void>;
  /** Undefined while all is well, else what is not. */
  check(device: string, slice?: string): Promise<string | undefined>;
  /**
   * Ends what open() started for a device or slice, so that it can be cut again; nothing where it is not open. Rejects while
   * it has clients.
   */
  shut(device: string, slice?: string): Promise<void>;
  /** Ends what open() started; clients must be gone. */
  close(): Promise<void>;
}
