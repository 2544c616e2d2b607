import type { RuntimeManifest } from '@gpuwhisk/common/runtimes';

/** A folder or file of the host that a sandbox sees, read-only. */
export interface Bind {
  source: string;
  /** Absolute path inside the sandbox. */
  target: string;
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
}

/** The runtimes that this machine can run. */
export interface RuntimeCatalog {
  /** runtimes.json with what was found on the machine (Python's minor version, defaults). */
  readonly manifest: RuntimeManifest;
  /** Plain lines about runtimes that are missing here, for the start-up. */
  readonly notes: readonly string[];
  supports(kind: string): boolean;
  /**
   * Readies the kind (fetching a Node.js release on first use) and the packages (installing them on first
   * use) and says how to start it in a sandbox of `memoryMiB` (default 256). Rejects with ProvisioningError.
   * Concurrent calls share the work.
   */
  launch(kind: string, requirements: readonly string[], memoryMiB?: number): Promise<RuntimeLaunch>;
}
