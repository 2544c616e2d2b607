// Pairs in sandboxes whose driver is asked for checkpoints (gpu.keepContext). Simulated GPUs are under MPS, where it refuses.
import { afterEach, describe, expect, test } from '@jest/globals';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { hasNative } from '@gpuwhisk/invoker/runtimes/native-runtime';
import { removeDataDir, startPlatform } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';
import { compileGpuFunction } from './gpu-functions.js';

/** Reports whether 4 MiB of device memory were all zeros, and writes there; crashes if its argument has `crash`. */
const code = `
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
enum { BYTES = 4 << 20 };
const char *gpuwhisk_main(const char *json) {
  static char answer[128];
  CUdeviceptr memory;
  unsigned char *copy = calloc(1, BYTES);
  int dirty = 0, error = cuMemAlloc(&memory, BYTES);
  if (!error) error = cuMemcpyDtoH(copy, memory, BYTES);
  for (int i = 0; i < BYTES; i++) dirty += copy[i] != 0;
  if (!error) error = cuMemsetD8(memory, 0x5a, BYTES);
  free(copy);
  if (strstr(json, "crash")) { static int *volatile nowhere; *nowhere = 1; }
  snprintf(answer, sizeof answer, "{\\"result\\":%d,\\"dirty\\":%d,\\"pid\\":%d}", error, dirty, getpid());
  return answer;
}`;

(hasStandIn() && hasNative() ? describe : describe.skip)('a kept CUDA context on the platform', () => {
  let platform: RunningPlatform | undefined;
  afterEach(async () => {
    await platform?.end('SIGTERM');
    if (platform !== undefined) removeDataDir(platform.dataDir);
    platform = undefined;
  });

  test('a pair whose driver refuses serves on after crashes, with clean device memory', async () => {
    const keep = ['--set', 'gpu.keepContext=checkpoint'];
    platform = await startPlatform({ flags: ['--gpus', 'sim:h100', '--stem-cells', 'false', ...keep] });
    const { api } = platform;
    const annotations = { gpu: { memoryMiB: 2048 } };
    await api.putAction('keeper', compileGpuFunction(code), { kind: 'native:1', annotations });
    const first = await api.run('keeper');
    expect(first.record.logs.join()).toContain('The driver takes no checkpoint of the process: error 801.');
    const { pid } = first.record.response.result as { pid: number };
    for (let crash = 0; crash < 5; crash += 1) {
      expect((await api.run('keeper', { crash: 1 })).record.response.success).toBe(false);
      expect((await api.run('keeper')).record.response.result).toEqual({ result: 0, dirty: 0, pid });
    }
  });
});
