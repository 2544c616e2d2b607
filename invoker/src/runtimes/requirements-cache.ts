import { createHash } from 'node:crypto';
import { lstat, mkdir, readFile, readdir, rename, rm, utimes, writeFile } from 'node:fs/promises';
import { join, dirname, isAbsolute } from 'node:path';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { ProvisioningError } from '../containers/container-factory.js';
import type { NpmPackages } from '../containers/container-factory.js';
import { bindsFor, JobLimitError } from '../containers/runtime-launch.js';
import type { RunJob, Bind } from '../containers/runtime-launch.js';
import { SharedWork, TooMuchWaits, bounded, fair } from '@gpuwhisk/common/concurrency';
import { superfluous } from '../host/fair-cache.js';
import { namedByProcesses, partialPrefix, fillFolder, isThere } from '../host/partial-folders.js';
import { ProgramError, runProgram } from '../host/programs.js';
import { measureTree, removeTree } from '../host/trees.js';
import { pythonBinds } from './find-toolchains.js';
import { installNpm, npmFolderName } from './npm-installation.js';
import type { Python } from './find-toolchains.js';
import { compileCommand, compileReport, compilerPath, isCompiled } from './python-compiler.js';
import type { Compilations, CompileReport } from './python-compiler.js';

/** Folder beside the sets with a file for each: the namespace that it was installed for. */
const ownersFolder = '.owners';
const failureKeptMs = 30_000;
const npmFailureKeptMs = 300_000;
const maxKeptFailures = 1000;
/** Installations that run at once, and those of a namespace that wait. */
const [maxInstalling, maxWaiting] = [2, 8];
/** Sets of an earlier version that wait to be compiled; further ones are after the next start of the platform. */
const maxUncompiled = 1024;
/** Longest time from the return of a folder until the process that uses it is visible, ms. */
const handoverMs = 600_000;

/** Dependencies and settings of a RequirementsCache. */
interface RequirementsCacheOptions {
  /** Folder with a folder for each set of packages; modification times are the times of the last use. */
  root: string;
  /** Bound on the total size of the folders; folders in use are kept even beyond it. */
  maxBytes: number;
  /** Bound on one set's size during its installation. */
  maxSetBytes: number;
  /** The platform's data folder, which contains `root`. */
  dataDir: string;
  /** Runs the jobs that install packages. */
  run: RunJob;
  /** Folder `runtimes` of the repository. */
  runtimesDir: string;
  clock: Clock;
  /** Counts the modules of the packages. */
  compilations: Compilations;
  logger?: { info(message: string): void; warn(message: string): void } | undefined;
}

/**
 * Folders of Python or npm packages, installed at their first use, for all namespaces. A folder counts for the namespace that it was
 * installed for. After an installation the namespace with the most bytes loses folders, the least recently used first, until
 * the rest is within the bound. Folders that a process uses, or that were just returned to a caller, stay.
 */
export class RequirementsCache {
  private readonly installs: SharedWork<string>;
  private readonly handedOutMs = new Map<string, number>();
  private readonly removing = new Map<string, Promise<void>>();
  private readonly bytes = new Map<string, number>();
  private trimming: Promise<void> = Promise.resolve();
  private readonly inTurn = fair(maxInstalling, maxWaiting);
  /** Names of folders that are being compiled, or will be. */
  private readonly uncompiled = new Set<string>();
  private readonly compileInTurn = bounded(1, maxUncompiled);
  /** By folder, the oldest first. */
  private readonly npmFailures = new Map<string, { error: ProvisioningError; untilMs: number }>();
  /** By installer. */
  private readonly settings = new Map<string, { untilMs: number; found: Promise<PipSettings> }>();

  constructor(private readonly options: RequirementsCacheOptions) {
    this.installs = new SharedWork(options.clock, failureKeptMs);
  }

  /**
   * The folder with these packages, which must have passed validateRequirements; `namespace` is the one that they are installed
   * for. Rejects with ProvisioningError.
   */
  async folder(python: Python, requirements: readonly string[], namespace = ''): Promise<string> {
    const { root, logger, compilations } = this.options;
    const key = requirementsKey(python, requirements);
    const name = requirements.join(' ');
    return this.obtain(key, async () => {
      const { folder, report } = await this.inTurn(namespace, () =>
        installRequirements(root, python, requirements, this.installation()),
      ).catch(tooManyInstallations);
      if (report) {
        await this.noteOwner(key, namespace);
        logger?.info(`Python packages were installed for actions: ${name}`);
        compilations.add(name, report);
        this.trim();
      } else if (!(await isCompiled(folder))) {
        void this.compile(python, key, name);
      }
      return folder;
    });
  }

  /**
   * The folder whose `node_modules` has the npm packages; `namespace` is the one that they are installed for. Rejects with
   * ProvisioningError; a failure is kept for five minutes, since functions that bring their packages otherwise do not need the folder.
   */
  async npmFolder(npm: NpmPackages, namespace = ''): Promise<string> {
    const { root, clock, logger } = this.options;
    const key = npmFolderName(npm);
    const failure = this.npmFailures.get(key);
    if (failure !== undefined && clock.monotonicMs() < failure.untilMs) throw failure.error;
    this.npmFailures.delete(key);
    return this.obtain(key, async () => {
      try {
        const { folder, isNew } = await this.inTurn(namespace, () => installNpm(root, npm, this.installation()));
        if (isNew) {
          await this.noteOwner(key, namespace);
          logger?.info('npm packages were installed for an action.');
          this.trim();
        }
        return folder;
      } catch (error) {
        if (error instanceof TooMuchWaits) return tooManyInstallations(error);
        if (error instanceof ProvisioningError) this.keepFailure(key, error);
        throw error;
      }
    });
  }

  private keepFailure(key: string, error: ProvisioningError): void {
    for (const oldest of this.npmFailures.keys()) {
      if (this.npmFailures.size < maxKeptFailures) break;
      this.npmFailures.delete(oldest);
    }
    this.npmFailures.set(key, { error, untilMs: this.options.clock.monotonicMs() + npmFailureKeptMs });
  }

  /** The folder of a name, which `install` makes if it is missing; concurrent calls share that. */
  private async obtain(key: string, install: () => Promise<string>): Promise<string> {
    await this.removing.get(key);
    this.handedOutMs.set(key, this.options.clock.monotonicMs());
    const installed = this.installs.do(key, install);
    const folder = await installed;
    if (await this.touch(folder)) return folder;
    this.installs.forget(key, installed); // Another platform has removed the folder.
    return this.installs.do(key, install);
  }

  private installation(): Installation & { runtimesDir: string } {
    const { run, dataDir, runtimesDir, maxSetBytes } = this.options;
    return { run, dataDir, runtimesDir, maxBytes: maxSetBytes, pip: (python) => this.pipSettings(python) };
  }

  /** The operator's settings, asked for once a minute at most: the answer takes as long as a small installation. */
  private pipSettings(python: Python): Promise<PipSettings> {
    const nowMs = this.options.clock.monotonicMs();
    const known = this.settings.get(python.installer);
    if (known !== undefined && nowMs < known.untilMs) return known.found;
    const found = pipSettings(python);
    this.settings.set(python.installer, { untilMs: nowMs + settingsKeptMs, found });
    found.catch(() => this.settings.delete(python.installer));
    return found;
  }

  /** Compiles a set that an earlier version of the platform installed, while functions use it. Never rejects. */
  private async compile(python: Python, key: string, name: string): Promise<void> {
    const { root, compilations } = this.options;
    this.uncompiled.add(key);
    try {
      const folder = join(root, key);
      const report = await this.compileInTurn(() => compileInstalled(python, folder, this.installation()));
      compilations.add(name, report);
    } catch (error) {
      compilations.addFailure(name, error);
    } finally {
      this.uncompiled.delete(key);
      this.bytes.delete(key);
    }
  }

  /** Removes folders beyond the bound, in the background. */
  private trim(): void {
    this.trimming = this.trimming
      .then(() => this.removeUnused())
      .catch((error: unknown) => this.options.logger?.warn(`Packages could not be removed: ${String(error)}`));
  }

  private async removeUnused(): Promise<void> {
    const { root, maxBytes, logger } = this.options;
    const names = (await readdir(root)).filter((name) => !name.startsWith('.'));
    const sets = await Promise.all(
      names.map(async (name) => ({
        name,
        owner: await this.owner(name),
        usedMs: (await lstat(join(root, name))).mtimeMs,
        bytes: await this.size(name),
      })),
    );
    if (sets.reduce((sum, { bytes }) => sum + bytes, 0) <= maxBytes) return;
    const used = await namedByProcesses(names);
    const isKept = (name: string): boolean =>
      used?.has(name) === true || this.uncompiled.has(name) || this.isHandedOut(name, used !== undefined);
    const removed = superfluous(
      sets.map((set) => ({ ...set, isKept: isKept(set.name) })),
      maxBytes,
    );
    for (const { name, bytes } of removed) {
      // It may have been handed out since.
      if (this.isHandedOut(name, used !== undefined)) continue;
      await this.remove(name);
      logger?.info(`A set of packages was removed, ${Math.ceil(bytes / 1024 / 1024)} MiB unused longest.`);
    }
  }

  private async noteOwner(name: string, namespace: string): Promise<void> {
    if (namespace === '') return;
    const folder = join(this.options.root, ownersFolder);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await writeFile(join(folder, name), namespace);
  }

  /** The namespace that a set was installed for; empty if it is not known. */
  private async owner(name: string): Promise<string> {
    try {
      return await readFile(join(this.options.root, ownersFolder, name), 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
      throw error;
    }
  }

  /**
   * Whether an invisible process may use the folder: for `handoverMs` after its return, or always if processes are not
   * visible.
   */
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
    // A caller that needs the folder meanwhile waits for its removal and installs it again.
    const gone = renamed.catch(() => undefined);
    this.removing.set(name, gone);
    await gone;
    this.removing.delete(name);
    await renamed;
    await rm(join(root, ownersFolder, name), { force: true });
    await removeTree(hidden);
  }

  private async size(name: string): Promise<number> {
    const known = this.bytes.get(name);
    if (known !== undefined) return known;
    const { bytes } = await measureTree(join(this.options.root, name), maxFiles);
    this.bytes.set(name, bytes);
    return bytes;
  }

  /** Marks a folder as used now; resolves with false if there is no such folder. */
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

function tooManyInstallations(error: unknown): never {
  if (!(error instanceof TooMuchWaits)) throw error;
  throw new ProvisioningError(
    `The requirements could not be installed: ${maxWaiting} installations of the namespace wait already. Try again later.`,
  );
}

const installTimeoutMs = 600_000;
const settingsKeptMs = 60_000;
const maxFiles = 300_000;
/** Memory of the sandbox that installs, without its files on the disk. */
const memoryMiB = 1024;
/** pip's scratch folder, inside the folder that is filled, so that pip moves unpacked files instead of copying them. */
const scratch = '.scratch';

/** The operator's settings for a pip in a sandbox. */
interface PipSettings {
  env: Record<string, string>;
  binds: Bind[];
}

/** Settings of an installation. */
interface Installation {
  run: RunJob;
  /** Bound on the bytes of a set of packages, including pip's downloads. */
  maxBytes: number;
  /** The platform's data folder. */
  dataDir: string;
  /** Finds the operator's settings of pip; default: asks pip. */
  pip?: (python: Python) => Promise<PipSettings>;
}

/**
 * The folder under `root` with the packages, and the report on their modules if this call installed them. `requirements` must
 * have passed validateRequirements. Packages are resolved, fetched, unpacked and compiled in a sandbox. Only wheels are
 * accepted, so that no code of packages runs there. Rejects with ProvisioningError, with pip's last errors; it is `byAction` if
 * pip refused the requirements or they exceed a bound.
 */
export async function installRequirements(
  root: string,
  python: Python,
  requirements: readonly string[],
  installation: Installation,
): Promise<{ folder: string; report: CompileReport | undefined }> {
  const folder = join(root, requirementsKey(python, requirements));
  let report: CompileReport | undefined;
  try {
    const fill = async (partial: string): Promise<void> => {
      report = await install(python, requirements, partial, folder, installation);
    };
    return (await fillFolder(folder, fill)) ? { folder, report } : { folder, report: undefined };
  } catch (error) {
    if (error instanceof JobLimitError && error.byJob) throw refusedByPip(`${error.message}.`);
    if (error instanceof JobLimitError) throw new ProvisioningError(`${notInstalled}: ${error.message}.`);
    if (!(error instanceof ProgramError)) throw error;
    // Without an error of pip's, the host is at fault, such as a Python without pip; so it is with errors of the system.
    const isOfHost = error.errorLines.some((line) => ofSystem.test(line));
    if (isOfHost || error.errorLines.length === 0)
      throw new ProvisioningError(`${notInstalled}: ${error.errorLines.at(-1) ?? error.lastLine}`);
    throw refusedByPip(error.errorLines.join('\n').replaceAll(folder, 'the packages'));
  }
}

/** Errors of the system that pip tells of, such as a full disk. */
const ofSystem = /OSError|\[Errno \d+\]/;
const notInstalled = 'The requirements could not be installed';

/** An error of the requirements themselves, which the activation tells as the developer's. */
function refusedByPip(reason: string): ProvisioningError {
  const text = `${notInstalled}: ${reason}`;
  return new ProvisioningError(text, text, true);
}

/**
 * Compiles the modules of an installed folder, in a sandbox. Functions may use the folder meanwhile. Rejects with ProgramError
 * or JobLimitError; the folder is complete then, too.
 */
async function compileInstalled(
  python: Python,
  folder: string,
  { run, maxBytes, dataDir }: Installation,
): Promise<CompileReport> {
  const binds = [...pythonBinds(python, dataDir), ...bindsFor([compilerPath])];
  const bounds = { maxBytes, maxFiles, memoryMiB, timeoutMs: installTimeoutMs };
  return compileReport(
    await run({ command: compileCommand(python, folder), binds, env: {}, folder, target: folder, ...bounds }),
  );
}

/** The name of the folder for these packages. */
function requirementsKey(python: Python, requirements: readonly string[]): string {
  const parts = [python.version, python.platform, ...[...requirements].sort()];
  return createHash('sha256').update(parts.join('\n')).digest('hex');
}

async function install(
  python: Python,
  requirements: readonly string[],
  folder: string,
  target: string,
  { run, maxBytes, dataDir, pip: settings = pipSettings }: Installation,
): Promise<CompileReport> {
  await mkdir(join(folder, scratch));
  const pip = await settings(python).catch((error: unknown) => {
    if (!(error instanceof ProgramError)) throw error;
    throw new ProvisioningError(`${notInstalled}: ${error.lastLine}`);
  });
  const environment = dirname(dirname(python.installer));
  const own = (await isThere(join(environment, 'pyvenv.cfg'))) ? [environment] : [];
  const options = ['--only-binary=:all:', '--no-compile', '--no-input', '--disable-pip-version-check', '--quiet'];
  const installer = [python.installer, '-m', 'pip', 'install', ...options, '--target', target, '--', ...requirements];
  const printed = await run({
    command: compileCommand(python, target, installer),
    binds: [...pythonBinds(python, dataDir), ...bindsFor([...own, python.installer, compilerPath]), ...pip.binds],
    env: {
      ...pip.env,
      TMPDIR: join(target, scratch),
      PIP_NO_CACHE_DIR: '1',
      PIP_ROOT_USER_ACTION: 'ignore',
      PIP_NO_WARN_SCRIPT_LOCATION: '1',
    },
    folder,
    target,
    maxBytes,
    maxFiles,
    memoryMiB,
    timeoutMs: installTimeoutMs,
  });
  await removeTree(join(folder, scratch));
  return compileReport(printed);
}

const timeoutMs = 30_000;
/** Folder inside the sandbox for the files and folders that settings name. */
const inside = '/run/pip';
/** Names of the platform's environment variables about connections, which pip gets. */
const passed = /^(https?_proxy|no_proxy|all_proxy|ssl_cert_(file|dir)|requests_ca_bundle)$/i;

/**
 * The operator's settings of pip (files and variables, as `pip config list` merges them) for a pip in a sandbox: environment
 * variables, and binds of the local files that they name. Rejects with ProgramError if pip does not start.
 */
async function pipSettings(python: Python): Promise<PipSettings> {
  const listed = await runProgram(python.installer, ['-m', 'pip', 'config', 'list'], { timeoutMs });
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(process.env)) {
    if (value !== undefined && passed.test(name)) env[name] = value;
  }
  // In ascending order of precedence: all commands, `pip install`, variables.
  for (const section of ['global', 'install', ':env:']) {
    for (const [name, value] of settingsOf(listed, section))
      env[`PIP_${name.replace(/-/g, '_').toUpperCase()}`] = value;
  }
  const binds: Bind[] = [];
  for (const [name, value] of Object.entries(env)) {
    const words = await Promise.all(
      value.split(/\s+/).map(async (word) => {
        if (!isAbsolute(word) || !(await isThere(word))) return word;
        const target = `${inside}/${binds.length}`;
        binds.push({ source: word, target });
        return target;
      }),
    );
    env[name] = words.join(' ');
  }
  return { env, binds };
}

/** Names and values of a section in what `pip config list` prints: `section.name='value'`, as Python writes strings. */
export function settingsOf(listed: string, section: string): [string, string][] {
  return listed.split('\n').flatMap((line): [string, string][] => {
    const [, found, name = '', quoted = ''] = /^(.+)\.([\w-]+)=(.*)$/.exec(line) ?? [];
    if (found !== section || quoted.length < 2) return [];
    const value = quoted.slice(1, -1).replace(/\\(.)/g, (_, escaped: string) => (escaped === 'n' ? '\n' : escaped));
    return [[name, value]];
  });
}
