import { createHash } from 'node:crypto';
import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import AdmZip from 'adm-zip';
import { ProvisioningError } from '../containers/container-factory.js';
import type { BuildStep, RuntimeLaunch } from '../containers/runtime-launch.js';
import { fillFolder, isThere } from '../host/partial-folders.js';
import { runInBackground, ProgramError, runProgram } from '../host/programs.js';
import type { Go } from './find-toolchains.js';
import { buildLaunch, loopLaunch } from './proxy-runtime.js';

/** Of the sandbox that compiles: the linker takes most of it. */
const buildMemoryMiB = 1024;
const elfMagic = '7f454c46';

/** How to start Go actions: compiled in a sandbox of its own first, unless the code is a program already. */
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
    needs: ({ code, binary }) => !binary || !isProgram(Buffer.from(code, 'base64')),
    key: folder,
    launch: { ...builder, env },
    memoryMiB: buildMemoryMiB,
  };
  return { ...loopLaunch(runtimesDir, node, { kind, sourceFile: 'exec', command: [], needs: [] }), build };
}

/** An executable, or a zip with the executable `exec` and no sources. */
function isProgram(bytes: Buffer): boolean {
  if (bytes.toString('hex', 0, 4) === elfMagic) return true;
  try {
    const names = new AdmZip(bytes).getEntries().map((entry) => entry.entryName);
    return names.includes('exec') && !names.some((name) => name.endsWith('.go'));
  } catch {
    return false; // No zip: what it is, the build says.
  }
}

const timeoutMs = 600_000;

/** `1.22` of `1.22.3`. */
export function goMinor(go: Go): string {
  return go.version.split('.').slice(0, 2).join('.');
}

/** The same for the cache in `folder` and for what is built from it: entries are found by these settings. */
function goEnv(folder: string): Record<string, string> {
  return {
    GOCACHE: join(folder, 'cache'),
    GOFLAGS: '-trimpath -buildvcs=false -mod=mod',
    // The machine's own, whatever go.mod asks for; and no C compiler.
    GOTOOLCHAIN: 'local',
    CGO_ENABLED: '0',
    GOENV: 'off',
    GOTELEMETRY: 'off',
  };
}

/**
 * The standard library's packages, compiled once for each toolchain into a folder under `root`; `guest` holds the list
 * of them. It takes about a minute, so it can be done ahead of need.
 */
export class GoPackages {
  private making: Promise<string> | undefined;
  /** Ends work in the background: it is needed now, or never. */
  private readonly background = new AbortController();
  /** No caller waits for it. */
  private slow = false;
  private closed = false;

  constructor(
    private readonly root: string,
    private readonly guest: string,
    private readonly go: Go,
  ) {}

  /** The folder; made now, or what the background has begun is finished at full speed. Rejects with ProvisioningError. */
  ready(): Promise<string> {
    this.slow = false;
    this.background.abort();
    return this.make();
  }

  /**
   * Makes the folder in the background, at the lowest priority and on one processor. Resolves with whether it was made
   * now; false also where `close` cut it short. Rejects with ProvisioningError.
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

  /** Ends what goes on in the background; resolves once it has left nothing. */
  async close(): Promise<void> {
    this.closed = true;
    this.background.abort();
    // Callers that wait for it get the error.
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
      throw new ProvisioningError(`Go could not be made ready: ${error.lastLine}`);
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
    // Beside the sources, which go in the end, so that a build that is killed leaves nothing.
    const env = { ...process.env, ...goEnv(partial), GOPROXY: 'off', GOMODCACHE: none, GOTMPDIR: sources };
    const build = ['build', '-ldflags=-s -w', '-o', none, '.'];
    const slow = { timeoutMs, env: { ...env, GOMAXPROCS: '1' }, cwd: sources, stop: this.background.signal };
    if (!(await runInBackground(program, build, slow))) {
      if (this.closed) throw new ProvisioningError('The platform is being stopped.');
      await runProgram(program, build, { timeoutMs, env, cwd: sources });
    }
    await Promise.all([rm(sources, { recursive: true }), rm(none, { recursive: true, force: true })]);
  }
}
