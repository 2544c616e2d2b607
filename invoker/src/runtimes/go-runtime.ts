import { createHash } from 'node:crypto';
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import AdmZip from 'adm-zip';
import { ProvisioningError } from '../containers/container-factory.js';
import { firstBytes } from '../containers/runtime-launch.js';
import type { BuildStep, GivenCode, RuntimeLaunch } from '../containers/runtime-launch.js';
import { fillFolder, isThere } from '../host/partial-folders.js';
import { runInBackground, ProgramError, runProgram } from '../host/programs.js';
import { removeTree } from '../host/trees.js';
import type { Go } from './find-toolchains.js';
import { buildLaunch, loopLaunch } from './proxy-runtime.js';

/** Memory of the sandbox that compiles, most of which the linker takes. */
const buildMemoryMiB = 1024;
const elfMagic = '7f454c46';

/** The launch of Go actions. Source is compiled first, in its own sandbox. */
export function goLaunch(runtimesDir: string, node: string, folder: string, go: Go): RuntimeLaunch {
  const kind = `go:${goMinor(go)}`;
  const builder = buildLaunch(runtimesDir, node, {
    kind,
    style: 'build-go',
    sourceFile: 'exec__.go',
    command: [join(go.root, 'bin', 'go'), goMinor(go)],
    needs: [go.root, folder, join(runtimesDir, 'go')],
  });
  const proxy = process.env.GOPROXY;
  const env = { ...goEnv(folder), GOMODCACHE: '/tmp/modules', ...(proxy === undefined ? {} : { GOPROXY: proxy }) };
  const build: BuildStep = {
    needs: (given) => !given.binary || !isProgram(given),
    key: folder,
    launch: { ...builder, env },
    memoryMiB: buildMemoryMiB,
  };
  return { ...loopLaunch(runtimesDir, node, { kind, sourceFile: 'exec', command: [], needs: [] }), build };
}

const asBuffer = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength);

/** Whether code is an executable, or a zip with the executable `exec` and no sources. */
function isProgram(given: GivenCode): boolean {
  if (Buffer.from(firstBytes(given, 4)).toString('hex') === elfMagic) return true;
  const { code = '', large } = given;
  try {
    const names = new AdmZip(large === undefined ? Buffer.from(code, 'base64') : asBuffer(large.bytes))
      .getEntries()
      .map((entry) => entry.entryName);
    return names.includes('exec') && !names.some((name) => name.endsWith('.go'));
  } catch {
    return false; // The code is no zip; the build reports the error.
  }
}

const timeoutMs = 600_000;

/** `1.22` of `1.22.3`. */
export function goMinor(go: Go): string {
  return go.version.split('.').slice(0, 2).join('.');
}

/** Environment of Go for the cache in `folder` and for builds from it: cache entries depend on these settings. */
function goEnv(folder: string): Record<string, string> {
  return {
    GOCACHE: join(folder, 'cache'),
    GOFLAGS: '-trimpath -buildvcs=false -mod=mod',
    // The machine's toolchain, whatever go.mod requests, and no C compiler.
    GOTOOLCHAIN: 'local',
    CGO_ENABLED: '0',
    GOENV: 'off',
    GOTELEMETRY: 'off',
  };
}

/**
 * The standard library's packages, compiled once for each toolchain into a folder under `root`; `guest` holds the list of
 * them. A compilation takes about a minute, so it can be done ahead of need.
 */
export class GoPackages {
  private making: Promise<string> | undefined;
  /** Aborts work in the background, when its result is needed at once or no longer. */
  private readonly background = new AbortController();
  /** Whether the work runs at low priority, as no caller waits for it. */
  private slow = false;
  private closed = false;

  constructor(
    private readonly root: string,
    private readonly guest: string,
    private readonly go: Go,
  ) {}

  /**
   * The folder, compiled at full speed if it is missing, also if work in the background has begun. Rejects with
   * ProvisioningError.
   */
  ready(): Promise<string> {
    this.slow = false;
    this.background.abort();
    return this.make();
  }

  /**
   * Makes the folder in the background, at the lowest priority and on one processor. Resolves with true if this call made
   * it, and with false if it existed or `close` aborted the work. Rejects with ProvisioningError.
   */
  async prebuild(): Promise<boolean> {
    if (await isThere(await this.folder())) return false;
    this.slow = !this.background.signal.aborted;
    try {
      await this.make();
      return true;
    } catch (error) {
      if (this.closed) return false;
      throw error;
    }
  }

  /** Ends work in the background; resolves once its leftovers are removed. */
  async close(): Promise<void> {
    this.closed = true;
    this.background.abort();
    // Waiting callers get the error.
    if (this.slow) await this.making?.catch(() => undefined);
  }

  private make(): Promise<string> {
    this.making ??= this.build().catch((error: unknown) => {
      this.making = undefined;
      throw error;
    });
    return this.making;
  }

  private async folder(): Promise<string> {
    const { root, version } = this.go;
    const list = await readFile(join(this.guest, 'prime.go.txt'));
    const key = createHash('sha256').update(`${root} ${version} `).update(list).digest('hex');
    return join(this.root, `go-${version}-${key.slice(0, 12)}`);
  }

  private async build(): Promise<string> {
    const folder = await this.folder();
    try {
      await fillFolder(folder, (partial) => this.compile(partial));
    } catch (error) {
      if (!(error instanceof ProgramError)) throw error;
      throw new ProvisioningError(`Go could not be prepared: ${error.lastLine}`);
    }
    return folder;
  }

  /** Fills the cache in `partial`. Rejects with ProgramError, and with ProvisioningError if the platform closes. */
  private async compile(partial: string): Promise<void> {
    const sources = join(partial, 'prime');
    await mkdir(sources);
    await copyFile(join(this.guest, 'prime.go.txt'), join(sources, 'prime.go'));
    await writeFile(join(sources, 'prime_main.go'), 'package main\n\nfunc main() {}\n');
    await writeFile(join(sources, 'go.mod'), `module prime\n\ngo ${goMinor(this.go)}\n`);
    const program = join(this.go.root, 'bin', 'go');
    const none = join(partial, 'none');
    // Temporary files lie beside the sources, whose removal also covers those of a killed build.
    const env = { ...process.env, ...goEnv(partial), GOPROXY: 'off', GOMODCACHE: none, GOTMPDIR: sources };
    const build = ['build', '-ldflags=-s -w', '-o', none, '.'];
    const slow = { timeoutMs, env: { ...env, GOMAXPROCS: '1' }, cwd: sources, stop: this.background.signal };
    if (!(await runInBackground(program, build, slow))) {
      if (this.closed) throw new ProvisioningError('The platform is being stopped.');
      await runProgram(program, build, { timeoutMs, env, cwd: sources });
    }
    await Promise.all([removeTree(sources), removeTree(none)]);
  }
}
