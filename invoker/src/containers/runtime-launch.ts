// What runtimes and containers agree on: how a runtime is started in a sandbox, jobs that prepare it, what it sees of the host,
// and what it needs for a GPU.
import { sep } from 'node:path';
import type { RuntimeManifest } from '@gpuwhisk/common/runtimes';

/** A folder or file of the host that a sandbox sees. */
export interface Bind {
  source: string;
  /** Absolute path inside the sandbox. */
  target: string;
  /** Default `ro`: read-only; `dev`: a device file, as it is. */
  mode?: 'ro' | 'rw' | 'dev';
}

/** Folders of the host that every sandbox sees. */
const baseView = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64'];

/** Whether `path` is `folder` or lies below it. */
export function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

/** Binds at the same path inside for what a sandbox does not see anyway, without those that another one holds. */
export function bindsFor(paths: readonly string[]): Bind[] {
  const missing = [...new Set(paths)].filter((path) => !baseView.some((folder) => isWithin(path, folder)));
  return missing
    .filter((path) => !missing.some((other) => other !== path && isWithin(path, other)))
    .map((path) => ({ source: path, target: path }));
}

/** That the code of an action is built before a container gets it. */
export interface Build {
  /** Whether this code has to be built; else it goes to the container as it is. */
  needs(code: { code: string; binary: boolean }): boolean;
  /** Of everything that the program depends on besides the code and the name of its main function. */
  key: string;
}

/** How it is built. */
export interface BuildStep extends Build {
  /** A runtime whose init builds the code and whose run answers `{"program": base64}`. */
  launch: RuntimeLaunch;
  /** Of the sandbox that builds. */
  memoryMiB: number;
}

/** How to start a runtime in a sandbox. */
export interface RuntimeLaunch {
  /** Program and arguments, as paths inside the sandbox. */
  command: readonly string[];
  /** What it needs besides the sandbox's base view of the system. */
  binds: readonly Bind[];
  env: Readonly<Record<string, string>>;
  /** `framed`: our protocol on file descriptor 3. `http`: `/init` and `/run` on port 8080. */
  protocol: 'framed' | 'http';
  /**
   * The runtime traces the processes that run functions (a proxy), and puts a stricter system call filter on these
   * itself. Default false.
   */
  traces?: boolean;
  /** Whether it is the same user of the host as all others that say so, instead of one of its own. */
  sharesUser?: boolean;
  /**
   * How it is started ahead of need, as a process that functions are injected into; absent where they are not, or where
   * this is such a launch itself (`traces`).
   */
  pair?: RuntimeLaunch;
  /** Absent where the runtime takes code as it is. */
  build?: BuildStep;
}

/** A launch of a runtime that is a pre-warmer by itself, which its program gets `flag` for. */
export function withOwnPair(launch: RuntimeLaunch, flag: string): RuntimeLaunch {
  const [program = '', ...words] = launch.command;
  const pair = { ...launch, command: [program, flag, ...words], env: { ...launch.env, GPUWHISK_PREWARM: 'true' } };
  return { ...launch, pair };
}

/** A program that the platform runs for functions, and that fills a folder of the host. */
export interface SandboxJob {
  /** Program and arguments, as paths inside the sandbox. */
  command: readonly string[];
  /** What it reads, besides the sandbox's base view of the system. */
  binds: readonly Bind[];
  env: Readonly<Record<string, string>>;
  /** What it fills, an existing folder of the host; a path inside that is called `target`. */
  folder: string;
  target: string;
  /** What may be in the folder at a time: bytes, and files with folders. */
  maxBytes: number;
  maxFiles: number;
  memoryMiB: number;
  timeoutMs: number;
}

/** The job was ended: it filled more than it may, or took too long. `message` says which. */
export class JobLimitError extends Error {
  override name = 'JobLimitError';
}

/** Runs a job to its end. Rejects with ProgramError if it fails or cannot be started, and with JobLimitError. */
export type RunJob = (job: SandboxJob) => Promise<void>;

/** The runtimes that this machine can run. */
export interface RuntimeCatalog {
  /** runtimes.json with what was found on the machine (Python's minor version, defaults). */
  readonly manifest: RuntimeManifest;
  /** Plain lines about runtimes that are missing here, for the start-up. */
  readonly notes: readonly string[];
  supports(kind: string): boolean;
  /** Has packages installed in sandboxes from now on. Without it they cannot be. */
  useSandboxes?(run: RunJob): void;
  /**
   * Readies the kind (fetching a Node.js release on first use) and the packages (installing them on first
   * use) and says how to start it in a sandbox of `memoryMiB` (default 256). Rejects with ProvisioningError.
   * Concurrent calls share the work.
   */
  launch(kind: string, requirements: readonly string[], memoryMiB?: number): Promise<RuntimeLaunch>;
}

/** What a container needs of the host to use its GPU. */
export interface GpuAccess {
  env: Readonly<Record<string, string>>;
  /** Paths of the host that it sees at the same place. */
  binds: readonly { path: string; mode: 'ro' | 'rw' | 'dev' }[];
  /** Folders with the driver's libraries, where those are not the system's. */
  libraries: readonly string[];
  /** Whether the GPU's share enforcer serves one user of the host only, so that all containers with a GPU run as that user. */
  oneUser: boolean;
}

/** What a container needs to use several devices. */
export function joinedAccess(all: readonly GpuAccess[]): GpuAccess {
  const binds = new Map(all.flatMap((access) => access.binds).map((bind) => [bind.path, bind]));
  return {
    env: Object.assign({}, ...all.map(({ env }) => env)) as Record<string, string>,
    binds: [...binds.values()],
    libraries: [...new Set(all.flatMap(({ libraries }) => libraries))],
    oneUser: all.some(({ oneUser }) => oneUser),
  };
}

/** The launch of a container with a GPU. */
export function launchWithGpu(launch: RuntimeLaunch, { env, binds, libraries, oneUser }: GpuAccess): RuntimeLaunch {
  const readable = [...libraries, ...binds.filter(({ mode }) => mode === 'ro').map(({ path }) => path)];
  const writable = binds.filter(({ mode }) => mode !== 'ro').map(({ path }) => path);
  const paths = [...readable.flatMap((path) => ['--read', path]), ...writable.flatMap((path) => ['--write', path])];
  const own = [
    ...binds.map(({ path, mode }) => ({ source: path, target: path, mode })),
    ...libraries.map((path) => ({ source: path, target: path })),
  ];
  const joined = (name: string, separator: string, values: readonly string[]): Record<string, string> => {
    const all = [launch.env[name], env[name], ...values].filter((value) => value !== undefined && value !== '');
    return all.length === 0 ? {} : { [name]: all.join(separator) };
  };
  return {
    ...launch,
    // A proxy passes these on to its pre-warmer, which sees nothing else.
    command: launch.traces ? [...launch.command, ...paths] : launch.command,
    binds: [...launch.binds, ...own],
    env: {
      ...launch.env,
      ...env,
      ...joined('LD_LIBRARY_PATH', ':', libraries),
      ...(launch.traces
        ? joined(
            'GPUWHISK_LIBRARIES',
            ':',
            libraries.map((path) => `${path}/`),
          )
        : {}),
    },
    ...(oneUser && { sharesUser: true }),
  };
}
