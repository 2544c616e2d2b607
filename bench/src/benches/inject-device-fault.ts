import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { nativePrewarmerPath } from '@gpuwhisk/invoker/host/native-programs';
import { type Injector, type LaunchedPrewarmer } from '@gpuwhisk/test/native/inject-addon';
import { medianOf, type BenchContext, type Measurement } from '../bench.js';
import { repositoryDir } from '../machine.js';
import { startHelper } from './cudasim.js';
import { requireInjector, type NativeFunction } from './inject-native.js';

const rounds = 20;
const compileTimeoutMs = 60_000;
const standIn = join(repositoryDir, 'native', 'build', 'cudasim');
const call = (argument: string) => ({ argument, timeoutMs: 10_000 });

/**
 * Source that launches an empty kernel and returns the error; with `bad` in its argument the kernel ends in an illegal
 * address.
 */
const source = `
#include <cuda.h>
#include <stdio.h>
#include <string.h>
static const char kernels[] = ".version 8.0\\n.target sm_80\\n.address_size 64\\n"
  "// gpuwhisk threads=32 blocksPerSm=8 nsPerBlock=1000\\n.visible .entry good()\\n{\\n ret;\\n}\\n"
  "// gpuwhisk threads=32 blocksPerSm=8 nsPerBlock=1000 faults=1\\n.visible .entry bad()\\n{\\n ret;\\n}\\n";
const char *gpuwhisk_main(const char *json) {
  static char text[64];
  CUmodule module;
  CUfunction kernel;
  int error = cuModuleLoadData(&module, kernels);
  if (!error) error = cuModuleGetFunction(&kernel, module, strstr(json, "bad") ? "bad" : "good");
  if (!error) error = cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, 0, 0, 0);
  if (!error) error = cuCtxSynchronize();
  snprintf(text, sizeof text, "{\\"error\\":%d}", error);
  return text;
}`;

/**
 * Recovery from a fault of the device on the stand-in driver; the fault stays with the pre-warmer's context.
 * `deviceFaultMs`: from the faulting call's answer to the same function's result in the pre-warmer that was standing
 * by. `deviceReadyMs`: from that result until another pre-warmer with a CUDA context stands by.
 */
export async function measureDeviceFault(context: BenchContext): Promise<Measurement[]> {
  const { temporaryDir, say } = context;
  const injector = requireInjector();
  if (!existsSync(join(standIn, 'daemon'))) {
    say('  device faults are not measured: the stand-in driver is not built');
    return [];
  }
  const socket = join(temporaryDir, 'stand-in');
  await startHelper(context, 'daemon', ['--socket', socket, '--gpus', 'a100-40'], process.env);

  const compiled = compile(temporaryDir);
  const launch = (): Promise<LaunchedPrewarmer> => launchWithContext(injector, socket);
  const fault: number[] = [];
  const ready: number[] = [];
  let standby = (await launch()).target;
  for (let round = 0; round < rounds; round += 1) {
    const serving = standby;
    standby = (await launch()).target;
    const failed = await run(injector, serving, compiled, 'bad');
    if (failed !== 700) throw new Error(`The device has no fault: ${failed}`);
    const startedMs = performance.now();
    const unloaded = await injector.unload(serving);
    if (unloaded.ready) throw new Error('A pre-warmer is used again although its device failed.');
    const error = await run(injector, standby, compiled, 'good');
    if (error !== 0) throw new Error(`The pre-warmer that stood by fails: ${error}`);
    fault.push(performance.now() - startedMs);
    const relaunchedMs = performance.now();
    const next = (await launch()).target;
    ready.push(performance.now() - relaunchedMs);
    await injector.end(standby);
    standby = next;
  }
  await injector.end(standby);
  return [medianOf('deviceFaultMs', fault), medianOf('deviceReadyMs', ready)];
}

function compile(folder: string): NativeFunction {
  const file = join(folder, 'device.c');
  const object = join(folder, 'device.so');
  writeFileSync(file, source);
  const include = `-I${join(repositoryDir, 'native', 'cudasim', 'include')}`;
  execFileSync('cc', ['-O2', '-shared', '-fPIC', include, '-o', object, file], { timeout: compileTimeoutMs });
  const code = readFileSync(object);
  return { code, digest: createHash('sha256').update(code).digest('hex') };
}

function launchWithContext(injector: Injector, socket: string): Promise<LaunchedPrewarmer> {
  return injector.launch({
    program: nativePrewarmerPath,
    arguments: ['--read', standIn, '--write', join(socket, '..')],
    environment: [
      'PATH=/usr/bin:/bin',
      'GPUWHISK_CUDA=true',
      `GPUWHISK_SIM_SOCKET=${socket}`,
      `LD_LIBRARY_PATH=${standIn}`,
    ],
  });
}

/** Loads and calls the function; returns the driver's error that the function reports. */
async function run(
  injector: Injector,
  target: LaunchedPrewarmer['target'],
  { code, digest }: NativeFunction,
  argument: string,
): Promise<number> {
  const outcome = await injector.inject(target, code, { digest, first: call(JSON.stringify({ [argument]: 1 })) });
  if (outcome.result === undefined) throw new Error(outcome.message);
  return (JSON.parse(outcome.result) as { error: number }).error;
}
