import { lstat, readdir, rename, rm, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Python } from './find-python.js';
import { installRequirements, requirementsKey } from './install-requirements.js';
import { namedByProcesses, partialPrefix } from '../host/partial-folders.js';
import type { RunJob } from '../containers/runtime-launch.js';
import { SharedWork } from '../host/concurrency.js';

const failureKeptMs = 30_000;
/** Installations at once, at most; others wait. */
const maxInstalling = 2;
/** From when a folder is handed out until the process that uses it can be seen, at most. */
const handoverMs = 600_000;

/** What a RequirementsCache needs. */
export interface RequirementsCacheOptions {
  /** Has a folder for each set of packages, in the order of their last use by the time of their last change. */
  root: string;
  /** What all folders may have together; what is in use is kept even beyond. */
  maxBytes: number;
  /** What one set may have while it is installed. */
  maxSetBytes: number;
  /** The platform's data folder, which `root` lies in. */
  dataDir: string;
  /** Runs what installs packages. */
  run: RunJob;
  clock: Clock;
  logger?: { info(message: string): void; warn(message: string): void } | undefined;
}

/**
 * Folders of Python packages, installed at their first use. After an installation those that are unused longest go,
 * until the rest is within the bound; one that a process has, or that was just handed out, stays.
 */
export class RequirementsCache {
  private readonly installs: SharedWork<string>;
  private readonly handedOutMs = new Map<string, number>();
  private readonly removing = new Map<string, Promise<void>>();
  private readonly bytes = new Map<string, number>();
  private trimming: Promise<void> = Promise.resolve();
  private readonly waiting: (() => void)[] = [];
  private installing = 0;

  constructor(private readonly options: RequirementsCacheOptions) {
    this.installs = new SharedWork(options.clock, failureKeptMs);
  }

  /** The folder with these packages, which must have passed validateRequirements. Rejects with ProvisioningError. */
  async folder(python: Python, requirements: readonly string[]): Promise<string> {
    const { root, clock, logger } = this.options;
    const key = requirementsKey(python, requirements);
    await this.removing.get(key);
    this.handedOutMs.set(key, clock.monotonicMs());
    const install = (): Promise<string> =>
      this.installs.do(key, async () => {
        const { run, dataDir, maxSetBytes } = this.options;
        const installation = { run, dataDir, maxBytes: maxSetBytes };
        const { folder, installed } = await this.inTurn(() =>
          installRequirements(root, python, requirements, installation),
        );
        if (installed) {
          logger?.info(`Python packages were installed for actions: ${requirements.join(' ')}`);
          this.trim();
        }
        return folder;
      });
    const installed = install();
    const folder = await installed;
    if (await this.touch(folder)) return folder;
    this.installs.forget(key, installed); // Somebody else has removed it.
    return install();
  }

  private async inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.installing >= maxInstalling) await new Promise<void>((resolve) => this.waiting.push(resolve));
    else this.installing += 1;
    try {
      return await work();
    } finally {
      const next = this.waiting.shift();
      if (next) next();
      else this.installing -= 1;
    }
  }

  /** Brings the folders within the bound in the background. */
  private trim(): void {
    this.trimming = this.trimming
      .then(() => this.removeUnused())
      .catch((error: unknown) => this.options.logger?.warn(`Python packages could not be removed: ${String(error)}`));
  }

  private async removeUnused(): Promise<void> {
    const { root, maxBytes, logger } = this.options;
    const names = (await readdir(root)).filter((name) => !name.startsWith(partialPrefix));
    const sets = await Promise.all(
      names.map(async (name) => ({
        name,
        usedMs: (await lstat(join(root, name))).mtimeMs,
        bytes: await this.size(name),
      })),
    );
    let total = sets.reduce((sum, { bytes }) => sum + bytes, 0);
    if (total <= maxBytes) return;
    const used = await namedByProcesses(names);
    sets.sort((one, other) => one.usedMs - other.usedMs);
    for (const { name, bytes } of sets) {
      if (total <= maxBytes) return;
      if (used?.has(name) || this.isHandedOut(name, used !== undefined)) continue;
      await this.remove(name);
      total -= bytes;
      logger?.info(`A set of Python packages was removed, ${Math.ceil(bytes / 1024 / 1024)} MiB unused longest.`);
    }
  }

  /** Whether a process may have the folder that cannot be seen: for a while, or for ever where none can be seen. */
  private isHandedOut(name: string, seesProcesses: boolean): boolean {
    const atMs = this.handedOutMs.get(name);
    return atMs !== undefined && (!seesProcesses || this.options.clock.monotonicMs() - atMs < handoverMs);
  }

  private async remove(name: string): Promise<void> {
    const { root } = this.options;
    const hidden = join(root, `${partialPrefix}${name}`);
    this.installs.forget(name);
    this.bytes.delete(name);
    this.handedOutMs.delete(name);
    const renamed = rename(join(root, name), hidden);
    // Who wants it meanwhile waits, and installs it anew.
    const gone = renamed.catch(() => undefined);
    this.removing.set(name, gone);
    await gone;
    this.removing.delete(name);
    await renamed;
    await rm(hidden, { recursive: true, force: true });
  }

  private async size(name: string): Promise<number> {
    const known = this.bytes.get(name);
    if (known !== undefined) return known;
    const bytes = await sizeOf(join(this.options.root, name));
    this.bytes.set(name, bytes);
    return bytes;
  }

  /** Marks a folder as used now; resolves with false if it is not there. */
  private async touch(folder: string): Promise<boolean> {
    const seconds = this.options.clock.now() / 1000;
    try {
      await utimes(folder, seconds, seconds);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
      throw error;
    }
  }
}

/** Bytes of the files below a folder. */
async function sizeOf(folder: string): Promise<number> {
  let bytes = 0;
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    bytes += entry.isDirectory() ? await sizeOf(path) : (await lstat(path)).size;
  }
  return bytes;
}
