import { createHash } from 'node:crypto';
import { access, chmod, copyFile, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import AdmZip from 'adm-zip';
import { ProvisioningError } from '../containers/container-factory.js';
import type { Go } from './find-toolchains.js';
import { partialPrefix } from './partial-folders.js';
import { buildLaunch, loopLaunch } from './proxy-runtime.js';
import { ProgramError, runProgram } from './run-program.js';
import type { BuildStep, RuntimeLaunch } from './runtime-catalog.js';

const primeTimeoutMs = 600_000;
/** Of the sandbox that compiles: the linker takes most of it. */
const buildMemoryMiB = 1024;
const elfMagic = '7f454c46';

/** `1.22` of `1.22.3`. */
export function goMinor(go: Go): string {
  return go.version.split('.').slice(0, 2).join('.');
}

/**
 * The folder under `root` with the standard library's packages compiled, made now if it is not there. `guest` holds
 * the list of them. Rejects with ProvisioningError.
 */
export async function prepareGo(root: string, guest: string, go: Go): Promise<string> {
  const list = await readFile(join(guest, 'prime.go.txt'));
  const key = createHash('sha256').update(`${go.root} ${go.version} `).update(list).digest('hex');
  const folder = join(root, `go-${go.version}-${key.slice(0, 12)}`);
  if (await exists(folder)) return folder;
  await mkdir(root, { recursive: true });
  const partial = await mkdtemp(join(root, partialPrefix));
  try {
    const sources = join(partial, 'prime');
    await mkdir(sources);
    await copyFile(join(guest, 'prime.go.txt'), join(sources, 'prime.go'));
    await writeFile(join(sources, 'prime_main.go'), 'package main\n\nfunc main() {}\n');
    await writeFile(join(sources, 'go.mod'), `module prime\n\ngo ${goMinor(go)}\n`);
    const env = { ...process.env, ...goEnv(partial), GOPROXY: 'off', GOMODCACHE: join(partial, 'none') };
    const target = join(partial, 'none');
    const args = ['build', '-ldflags=-s -w', '-o', target, '.'];
    await runProgram(join(go.root, 'bin', 'go'), args, { timeoutMs: primeTimeoutMs, env, cwd: sources });
    await Promise.all([rm(sources, { recursive: true }), rm(target)]);
    await chmod(partial, 0o755);
    await rename(partial, folder);
  } catch (error) {
    await rm(partial, { recursive: true, force: true });
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOTEMPTY' || code === 'EEXIST') return folder; // Another process was first.
    if (!(error instanceof ProgramError)) throw error;
    throw new ProvisioningError(`Go could not be made ready: ${error.lastLine}`);
  }
  return folder;
}

/** The same for the cache and for what is built from it: entries are found by these settings. */
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

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
