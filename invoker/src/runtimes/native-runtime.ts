import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ProvisioningError } from '../containers/container-factory.js';
import { bindsFor, firstBytes } from '../containers/runtime-launch.js';
import type { BuildStep, GivenCode, RuntimeLaunch } from '../containers/runtime-launch.js';
import { isComing, whenReady } from '../host/behind.js';
import { nativePrewarmerPath, proxyPath } from '../host/native-programs.js';
import { buildLaunch } from './proxy-runtime.js';

/** The version of the C interface of functions (docs/mscontainer.md). */
export const nativeVersion = '1';

/** Folders of the sandbox that functions may write in, as in other kinds. */
const writable = ['.', '/tmp', '/dev/shm'];
/** Memory of the sandbox that compiles. */
export const buildMemoryMiB = 1024;
const elfMagic = '7f454c46';

/** Whether code is source text or an archive of it, rather than an ELF file. */
export function isNativeSource(code: GivenCode): boolean {
  return Buffer.from(firstBytes(code, 4)).toString('hex') !== elfMagic;
}

const isBuilt = (): boolean => existsSync(proxyPath) && existsSync(nativePrewarmerPath);

/** Whether native functions can run on this machine, as the proxy and the pre-warmer are built, or are being built. */
export const hasNative = (): boolean => isBuilt() || isComing('injection');

/** Waits for the proxy and the pre-warmer. Rejects with ProvisioningError if they could not be built. */
export async function nativeBuilt(): Promise<void> {
  await whenReady('injection').catch((error: Error) => {
    throw new ProvisioningError(`Native functions cannot run: ${error.message}`);
  });
  if (!isBuilt()) throw new ProvisioningError('Native functions cannot run: the proxy was not built.');
}

/** The compilers of native functions on a machine, as paths. */
export interface NativeCompilers {
  c: string;
  cpp?: string;
}

/**
 * The launch of the proxy with a native pre-warmer. Source is compiled first, in its own sandbox; without compilers the
 * proxy refuses all code but shared objects.
 */
export function nativeLaunch(runtimesDir: string, node: string, compilers: NativeCompilers | undefined): RuntimeLaunch {
  const kind = `native:${nativeVersion}`;
  const launch: RuntimeLaunch = {
    command: [proxyPath, kind, nativePrewarmerPath, ...writable.flatMap((folder) => ['--write', folder])],
    binds: bindsFor([proxyPath, nativePrewarmerPath]),
    env: { GPUWHISK_PREWARM: 'true', GPUWHISK_RUNS_FD: '4' },
    protocol: 'framed',
    traces: true,
    servesRuns: true,
  };
  if (!compilers) return launch;
  const build: BuildStep = {
    needs: isNativeSource,
    key: [compilers.c, compilers.cpp ?? ''].join(' '),
    launch: buildLaunch(runtimesDir, node, {
      kind,
      style: 'build-native',
      sourceFile: 'function.src',
      command: [compilers.c, ...(compilers.cpp === undefined ? [] : [compilers.cpp])],
      needs: [join(runtimesDir, 'native'), join(runtimesDir, 'cuda')],
    }),
    memoryMiB: buildMemoryMiB,
  };
  return { ...launch, build };
}
