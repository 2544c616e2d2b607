// The interface between runtimes and containers: launches, builds and jobs in sandboxes, binds, and access to GPUs.
import { sep } from 'node:path';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { RuntimeManifest } from '@gpuwhisk/common/runtimes';
import { installationFolder } from '../host/native-programs.js';
import type { ContainerSpec, InitRequest, NpmPackages, SharedModules } from './container-factory.js';

/** A folder or file of the host that is mounted into a sandbox. */
export interface Bind {
  source: string;
  /** Absolute path inside the sandbox. */
  target: string;
  /** Default `ro`, read-only; `dev` is a device file with its own permissions. */
  mode?: 'ro' | 'rw' | 'dev';
}

/** Folders of the host that every sandbox sees. */
const baseView = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64'];

/** Whether `path` is `folder` or lies below it. */
export function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

/**
 * Binds of paths at the same place inside, without paths below another path of the list. Paths in the base view need none, except those of
 * the installation, which have other places in a sandbox.
 */
export function bindsFor(paths: readonly string[]): Bind[] {
  const isSeen = (path: string): boolean => baseView.some((folder) => isWithin(path, folder));
  const missing = [...new Set(paths)].filter((path) => isWithin(path, installationFolder) || !isSeen(path));
  return missing
    .filter((path) => !missing.some((other) => other !== path && isWithin(path, other)))
    .map((path) => ({ source: path, target: path }));
}

/** Code of an init request. */
export type GivenCode = Pick<InitRequest, 'code' | 'large' | 'binary'>;

/** The first bytes of an archive or a program; none of source text. */
export function firstBytes({ code = '', large, binary }: GivenCode, count: number): Uint8Array {
  if (!binary) return new Uint8Array();
  return large === undefined
    ? Buffer.from(code.slice(0, Math.ceil(count / 3) * 4), 'base64').subarray(0, count)
    : large.bytes.subarray(0, count);
}

/** Tells which code is built before a container gets it. */
export interface Build {
  /** Whether this code has to be built; other code goes to the container unchanged. */
  needs(code: GivenCode): boolean;
  /** Key of everything that the program depends on besides the code and the name of its main function. */
  key: string;
}

/** A build in a sandbox, with the runtime that builds. */
export interface BuildStep extends Build {
  /** A runtime whose init builds the code and whose run answers `{"program": base64}`. */
  launch: RuntimeLaunch;
  /** Memory of the sandbox that builds. */
  memoryMiB: number;
}

/** Tells which code is replaced by a program that starts faster, once that is made. */
export interface BackgroundBuild extends Build {
  /** Called with what the builder has answered beside the program of the action `name`. */
  made(name: string, report: JsonObject): void;
  /** Called if no program could be made. */
  failed(name: string, error: unknown): void;
}

/** How to start a runtime in a sandbox. */
export interface RuntimeLaunch {
  /** Program and arguments, as paths inside the sandbox. */
  command: readonly string[];
  /** Mounts besides the sandbox's base view of the system. */
  binds: readonly Bind[];
  env: Readonly<Record<string, string>>;
  /** `framed`: our protocol on file descriptor 3. `http`: `/init` and `/run` on port 8080. */
  protocol: 'framed' | 'http';
  /**
   * Whether the runtime is a proxy: it traces the processes that run functions and sets their stricter system-call filter.
   * Default false.
   */
  traces?: boolean;
  /** Whether the runtime takes descriptor 4, a socket for runs of the loaded function. Default false. */
  servesRuns?: boolean;
  /** Whether its paths are the same in a sandbox as on the host, as files that it reads name them. Default false. */
  keepsPaths?: boolean;
  /** Whether the runtime runs as the host user that all such launches share, instead of its own. */
  sharesUser?: boolean;
  /**
   * The launch of a pair that functions are injected into, for starts ahead of need. Absent if the kind has no injection, or
   * if this is such a launch itself (`traces`).
   */
  pair?: RuntimeLaunch;
  /** As Container.sharedModules. */
  sharedModules?: SharedModules;
  /** Absent if the runtime takes code without a build. */
  build?: BuildStep;
  /** A build that is not waited for; absent if there is none. */
  quicken?: BuildStep & BackgroundBuild;
}

/** A launch whose pair is the same program with `flag`: the runtime is its own pre-warmer. */
export function withOwnPair(launch: RuntimeLaunch, flag: string): RuntimeLaunch {
  const [program = '', ...words] = launch.command;
  const pair = { ...launch, command: [program, flag, ...words], env: { ...launch.env, GPUWHISK_PREWARM: 'true' } };
  return { ...launch, pair };
}

/** A program that the platform runs to fill a folder of the host for functions. */
export interface SandboxJob {
  /** Program and arguments, as paths inside the sandbox. */
  command: readonly string[];
  /** Mounts besides the sandbox's base view of the system. */
  binds: readonly Bind[];
  env: Readonly<Record<string, string>>;
  /** The existing folder of the host that the job fills; `target` is its path inside the sandbox. */
  folder: string;
  target: string;
  /** Bounds on the folder's contents: bytes, and number of files and folders. */
  maxBytes: number;
  maxFiles: number;
  memoryMiB: number;
  timeoutMs: number;
}

/** The job was ended for exceeding its bound on size or time; `message` names the bound. */
export class JobLimitError extends Error {
  override name = 'JobLimitError';
  constructor(
    message: string,
    /** Whether the job is at fault, rather than the host. */
    readonly byJob = true,
  ) {
    super(message);
  }
}

/**
 * Runs a job to its end. Resolves with what it printed on its standard output, of which the last 16 KiB are sure to be there.
 * Rejects with ProgramError if the job fails or cannot be started, and with JobLimitError.
 */
export type RunJob = (job: SandboxJob) => Promise<string>;

/** The runtimes that this machine can run. */
export interface RuntimeCatalog {
  /** runtimes.json, completed with the machine's versions and defaults. */
  readonly manifest: RuntimeManifest;
  /** Lines of text about missing runtimes, for the start-up. */
  readonly notes: readonly string[];
  supports(kind: string): boolean;
  /** Sets the sandboxes for installations of packages, which fail before this call. */
  useSandboxes?(run: RunJob): void;
  /**
   * The launch of a kind with packages in a sandbox of `memoryMiB` (default 256). The first use fetches a Node.js release
   * and installs packages, fairly between namespaces; concurrent calls share this work. Rejects with ProvisioningError. npm
   * packages that cannot be installed are told of in the function's log instead: its archive may not need them.
   */
  launch(
    kind: string,
    requirements: readonly string[],
    memoryMiB?: number,
    namespace?: string,
    npm?: NpmPackages,
  ): Promise<RuntimeLaunch>;
}

/** What a container's spec asks of a launch. */
export function launchWanted(spec: ContainerSpec): Parameters<RuntimeCatalog['launch']> {
  return [spec.kind, spec.requirements, spec.memoryMiB, spec.installsFor, spec.npm];
}

/** Environment, mounts and user by which a container uses its GPU. */
export interface GpuAccess {
  env: Readonly<Record<string, string>>;
  /** Paths of the host, mounted at the same place inside. */
  binds: readonly { path: string; mode: 'ro' | 'rw' | 'dev' }[];
  /** Folders with the driver's libraries, if they are not the system's. */
  libraries: readonly string[];
  /**
   * Whether the GPU's share enforcer serves one user of the host only, so that all containers with a GPU run as that user.
   */
  oneUser: boolean;
}

/** The access to several devices together. */
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
    // A proxy passes these paths to its pre-warmer, which sees no others.
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
