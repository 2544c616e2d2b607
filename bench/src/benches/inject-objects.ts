import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { nativePrewarmerPath } from '@gpuwhisk/invoker/host/native-build';
import { loadInjector, type Injector, type LaunchedPrewarmer } from '@gpuwhisk/test/native/inject-addon';

const compileTimeoutMs = 60_000;

/** A shared object and its digest. */
export interface NativeFunction {
  code: Buffer;
  digest: string;
}

/** Returns its input; its data makes it an object of about 64 KiB. */
export const echoSource = `
__attribute__((used)) static const char room[49000] = {1};
const char *gpuwhisk_main(const char *json) { return json; }`;

/** Ends with a fault of memory. */
export const crashSource = `
const char *gpuwhisk_main(const char *json) { static int *volatile nowhere; *nowhere = 1; return json; }`;

/** Compiles C source in `folder`. Throws with the compiler's words. */
export function compileFunction(folder: string, name: string, source: string): NativeFunction {
  const file = join(folder, `${name}.c`);
  const object = join(folder, `${name}.so`);
  writeFileSync(file, source);
  execFileSync('cc', ['-O2', '-shared', '-fPIC', '-o', object, file], { timeout: compileTimeoutMs });
  const code = readFileSync(object);
  return { code, digest: createHash('sha256').update(code).digest('hex') };
}

/** The addon. Throws where it was not built. */
export function requireInjector(): Injector {
  const injector = loadInjector();
  if (!injector) throw new Error('The inject bench needs native/build/inject.node: a C++ compiler on x86-64 Linux.');
  return injector;
}

/** A native pre-warmer, which is its caller's to end. Rejects if it does not start. */
export function launchNative(injector: Injector): Promise<LaunchedPrewarmer> {
  return injector.launch({ program: nativePrewarmerPath, environment: ['PATH=/usr/bin:/bin'] });
}
