import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll } from '@jest/globals';
import type { InjectOptions, LaunchedPrewarmer, InjectionOutcome } from './inject-addon.js';
import { pythonInjection, pythonPrewarmer, pythonPairLaunch } from '@gpuwhisk/invoker/runtimes/python-runtime';
import { findPython } from '@gpuwhisk/invoker/runtimes/find-toolchains';
import type { Python } from '@gpuwhisk/invoker/runtimes/find-toolchains';
import type { RuntimeLaunch } from '@gpuwhisk/invoker/containers/runtime-launch';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { hostJobs } from '@gpuwhisk/invoker/containers/sandbox/sandbox-job';
import { installRequirements } from '@gpuwhisk/invoker/runtimes/requirements-cache';
import { digestOf, injector } from './native-functions.js';

const runtimesDir = fileURLToPath(new URL('../../../runtimes', import.meta.url));
const cacheDir = mkdtempSync(join(tmpdir(), 'gpuwhisk-python-'));
afterAll(() => rmSync(cacheDir, { recursive: true, force: true }));

/** The machine's Python; undefined without Python, or without the addon. */
export const python: Python | undefined = injector && (await findPython(join(cacheDir, 'python.json')));

/**
 * The system's own Python, if its program lies at a fixed address (ELF's type ET_EXEC), as Debian's does: lines of the kernel's list of
 * its mappings are the shortest there are.
 */
export async function fixedPython(): Promise<Python | undefined> {
  const found = injector && (await findPython(join(cacheDir, 'system.json'), { ...process.env, PATH: '/usr/bin' }));
  const isFixed = found !== undefined && readFileSync(found.executable).readUInt16LE(16) === 2;
  return isFixed ? found : undefined;
}

/** The proxy with a Python pre-warmer; an unload empties the folder `scratch`, too. */
export function proxyLaunch(scratch: string): RuntimeLaunch {
  const launch = pythonPairLaunch(runtimesDir, cacheDir, python!);
  return { ...launch, env: { ...launch.env, GPUWHISK_SCRATCH: scratch } };
}

/** A folder with numpy, which is installed if missing; undefined if it cannot be installed. */
export async function folderWithNumpy(): Promise<string | undefined> {
  if (!python) return undefined;
  const installation = { run: hostJobs(systemClock), maxBytes: Infinity, dataDir: cacheDir };
  try {
    return (await installRequirements(join(cacheDir, 'packages'), python, ['numpy'], installation)).folder;
  } catch (error) {
    console.log(`Without numpy: ${String(error).slice(0, 200)}`);
    return undefined;
  }
}

/** A Python pre-warmer under test, with a folder of its own. */
export class PythonPrewarmer {
  private constructor(
    private readonly launched: LaunchedPrewarmer,
    readonly folder: string,
    private readonly printedFile: string,
    private readonly packages: string[],
  ) {}

  static async launch(
    imports: string[] = [],
    packages: string[] = [],
    environment: string[] = [],
    program = python,
  ): Promise<PythonPrewarmer> {
    if (!injector || !program) throw new Error('There is no Python here, or the addon was not built.');
    const folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-python-'));
    const printedFile = `${folder}.printed`;
    const output = openSync(printedFile, 'a');
    try {
      const options = pythonPrewarmer(runtimesDir, program, { folder, imports, packages, write: ['/dev/shm'] });
      const launched = await injector.launch({
        ...options,
        environment: [...(options.environment ?? []), ...environment],
        output,
        errors: output,
      });
      return new PythonPrewarmer(launched, folder, printedFile, packages);
    } catch (error) {
      throw new Error(readFileSync(printedFile, 'utf8'), { cause: error });
    } finally {
      closeSync(output);
    }
  }

  get pid(): number {
    return this.launched.pid;
  }

  /** Loads `code`; if `value` is given, also calls the function in the same request. */
  async inject(
    code: string | Buffer,
    value?: unknown,
    options: Partial<InjectOptions> = {},
    timeoutMs = 20_000,
  ): Promise<InjectionOutcome> {
    const bytes = Buffer.from(code);
    const first = value === undefined ? undefined : { argument: JSON.stringify(value), timeoutMs };
    const outcome = await injector!.inject(this.launched.target, bytes, {
      digest: digestOf(bytes),
      entry: 'main',
      ...pythonInjection(python!, this.packages),
      ...(first && { first }),
      ...options,
    });
    if (outcome.kind !== 'result' && outcome.kind !== 'refused') emptyFolder(this.folder);
    return outcome;
  }

  call(value: unknown, environment: string[] = []): Promise<InjectionOutcome> {
    return injector!.call(this.launched.target, { argument: JSON.stringify(value), environment, timeoutMs: 20_000 });
  }

  async unload(): Promise<InjectionOutcome> {
    const outcome = await injector!.unload(this.launched.target);
    emptyFolder(this.folder);
    return outcome;
  }

  /** Injects, calls and unloads; returns the function's result. Throws unless all steps succeed. */
  async result(code: string, value: unknown = {}): Promise<unknown> {
    const outcome = await this.inject(code, value);
    if (outcome.kind !== 'result') throw new Error(`${outcome.kind}: ${outcome.message}\n${this.printed()}`);
    const unloaded = await this.unload();
    if (!unloaded.ready) throw new Error(unloaded.replace);
    return JSON.parse(outcome.result);
  }

  /** Output of functions since the last call. */
  printed(): string {
    const text = readFileSync(this.printedFile, 'utf8');
    truncateSync(this.printedFile);
    return text;
  }

  async end(): Promise<void> {
    await injector!.end(this.launched.target);
    rmSync(this.folder, { recursive: true, force: true });
    rmSync(this.printedFile);
  }
}

/** Removes a function's files in the folder of its pre-warmer. */
function emptyFolder(folder: string): void {
  for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true, force: true });
}

/** Mappings, descriptors, threads and signals of a process, as the kernel reports them. */
export function kernelState(pid: number): unknown {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return {
    maps: readFileSync(`/proc/${pid}/maps`, 'utf8'),
    descriptors: readdirSync(`/proc/${pid}/fd`),
    status: status
      .split('\n')
      .filter((line) => /^(Threads|Sig[BCIP]|Shd|Vm(Size|Data|Stk)|NoNewPrivs|Seccomp)/.test(line)),
  };
}
