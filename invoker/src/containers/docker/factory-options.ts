import type { Clock } from '@gpuwhisk/common/system/clock';
import type { GpuGrant } from '../container-factory.js';
import type { GpuAccess } from '../runtime-launch.js';
import type { EgressPolicy } from '../sandbox/egress.js';
import type { EngineTimeouts } from './engine.js';

/** Which image a kind is. */
export interface ImageCatalog {
  supports(kind: string): boolean;
  /** The image's name with its tag; undefined if there is no such kind. */
  imageOf(kind: string): string | undefined;
  /** Whether the image is taken as the engine has it, and fetched only if it lacks it. */
  isLocal(image: string): boolean;
}

/** Dependencies and settings of the Docker factory. */
export interface DockerFactoryOptions {
  catalog: ImageCatalog;
  clock: Clock;
  /** Path of the engine's Unix socket; the engine runs on this host. */
  socketPath: string;
  /** The platform's data folder, at the same path on the engine's host; sockets lie in `docker` below it. */
  dataDir: string;
  /** Of the invoker; begins the names of its containers, as OpenWhisk's do. */
  instance: number;
  /** A network of the operator's that containers are in; absent: one of this platform's own, in which none reaches another. */
  network?: string | undefined;
  /** Folders, besides /tmp, that images write to, by the beginning of the image's name: they are memory, and empty at first. */
  writable?: Readonly<Record<string, readonly string[]>>;
  /** Name servers of containers; none: the engine's. */
  dns?: readonly string[];
  /** Where functions may connect to, in a network of the platform's own; rules of namespaces do not hold here. */
  egress?: EgressPolicy;
  /** Memory of the pool, which processors are shared by. */
  poolMemoryMiB: number;
  /** Environment of every runtime, such as `__OW_API_HOST`. */
  runtimeEnv?: Readonly<Record<string, string>>;
  /**
   * Listens on an address of the host that containers reach, and resolves with the port. Called once, by start(), and
   * only where the network has such an address.
   */
  serveContainers?: (address: string) => Promise<number>;
  /** What a container needs for its GPU; absent: none gets one. Rejects with ProvisioningError. */
  gpuAccess?: (grant: GpuGrant) => Promise<GpuAccess>;
  timeouts?: Partial<EngineTimeouts>;
  logger?: { info(message: string): void; warn(message: string): void };
}
