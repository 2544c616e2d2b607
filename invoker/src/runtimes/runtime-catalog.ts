import type { RuntimeManifest } from '@gpuwhisk/common/runtimes';
import type { RunJob } from './sandbox-job.js';

/** A folder or file of the host that a sandbox sees. */
export interface Bind {
  source: string;
  /** Absolute path inside the sandbox. */
  target: string;
  /** Default `ro`: read-only; `dev`: a device file, as it is. */
  mode?: 'ro' | 'rw' | 'dev';
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
