import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { openNvidiaDriver } from '@gpuwhisk/invoker/gpu-agent/drivers/nvidia-driver';
import { loadNvml } from '@gpuwhisk/invoker/gpu-agent/drivers/nvml';
import type { Nvml } from '@gpuwhisk/invoker/gpu-agent/drivers/nvml';
import { runProgram } from '@gpuwhisk/invoker/host/programs';
import { describeOnStandIn } from './mps-home.js';

const include = fileURLToPath(new URL('../../../native/cudasim/include', import.meta.url));

/**
 * An NVML library of the time before MIG and GPM, with that time's names: second versions of functions that have a
 * third one today, and first versions of those that have a second. It has one device, and one process of unknown
 * memory.
 */
const program = `
#include <nvml.h>
#include <string.h>
#pragma GCC visibility push(default)
nvmlReturn_t nvmlInit_v2(void) { return NVML_SUCCESS; }
nvmlReturn_t nvmlShutdown(void) { return NVML_SUCCESS; }
const char *nvmlErrorString(nvmlReturn_t result) { return result == NVML_ERROR_NO_PERMISSION ? "no permission" : "failed"; }
nvmlReturn_t nvmlSystemGetDriverVersion(char *to, unsigned int length) { strncpy(to, "470.82.01", length); return 0; }
nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version) { *version = 11040; return 0; }
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count) { *count = 1; return 0; }
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) { *device = (nvmlDevice_t)8; return index; }
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) { *device = (nvmlDevice_t)8; return uuid[0] != 'G'; }
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t d, char *to, unsigned int length) { (void)d; strncpy(to, "GPU-old", length); return 0; }
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t d, char *to, unsigned int length) { (void)d; strncpy(to, "Tesla V100-SXM2-16GB", length); return 0; }
#ifndef WITHOUT_CORES
nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t d, unsigned int *cores) { (void)d; *cores = 5120; return 0; }
#endif
nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t d, int *major, int *minor) { (void)d; *major = 7; *minor = 0; return 0; }
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t d, nvmlMemory_t *m) { (void)d; m->total = 16ull << 30; m->used = 3ull << 30; m->free = 13ull << 30; return 0; }
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t d, nvmlUtilization_t *u) { (void)d; u->gpu = 37; return 0; }
nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t d, nvmlTemperatureSensors_t s, unsigned int *t) { (void)d; (void)s; *t = 61; return 0; }
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t d, unsigned int *mw) { (void)d; (void)mw; return NVML_ERROR_NOT_SUPPORTED; }
nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t d, unsigned long long *r) { (void)d; *r = 0x44; return 0; }
nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t d, nvmlComputeMode_t *m) { (void)d; *m = NVML_COMPUTEMODE_DEFAULT; return 0; }
nvmlReturn_t nvmlDeviceSetComputeMode(nvmlDevice_t d, nvmlComputeMode_t m) { (void)d; (void)m; return NVML_ERROR_NO_PERMISSION; }
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t d, unsigned int *count, nvmlProcessInfo_t *infos) {
  (void)d; *count = 1; infos[0] = (nvmlProcessInfo_t){4711, ~0ull, NVML_NO_INSTANCE, NVML_NO_INSTANCE}; return 0;
}
nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) { *set = (nvmlEventSet_t)16; return 0; }
nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) { (void)set; return 0; }
nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t s, nvmlEventData_t *d, unsigned int ms) { (void)s; (void)d; (void)ms; return NVML_ERROR_UNKNOWN; }
nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t d, unsigned long long *t) { (void)d; *t = 0; return NVML_ERROR_NOT_SUPPORTED; }
nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t d, unsigned long long t, nvmlEventSet_t s) { (void)d; (void)t; (void)s; return 0; }
`;

describeOnStandIn('a driver of an older time', () => {
  const nvml = loadNvml() as Nvml;
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-nvml-'));
    writeFileSync(join(folder, 'nvml.c'), program);
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  async function build(name: string, ...flags: string[]): Promise<string> {
    const library = join(folder, name);
    const args = ['-shared', '-fPIC', `-I${include}`, ...flags, join(folder, 'nvml.c'), '-o', library];
    await runProgram('cc', args, { timeoutMs: 60_000 });
    return library;
  }

  test('is read with what it has', async () => {
    const library = await build('libold.so');
    const manage = { mps: true, mig: true };
    const driver = await openNvidiaDriver({ nvml, clock: systemClock, library, manage });
    expect(driver).toMatchObject({ simulated: false, version: { driver: '470.82.01', cuda: '11.4' } });
    expect(await driver.devices()).toEqual([
      {
        uuid: 'GPU-old',
        index: 0,
        name: 'Tesla V100-SXM2-16GB',
        type: 'v100-sxm2-16gb',
        smCount: 80,
        memoryMiB: 16_384,
        mode: 'timeslice',
        slices: [],
        simulated: false,
      },
    ]);
    expect(await driver.sample()).toEqual([
      {
        uuid: 'GPU-old',
        usedMemoryMiB: 3072,
        utilisation: 0.37,
        temperatureC: 61,
        clockEvents: ['power cap', 'hardware thermal slowdown'],
        processes: [{ pid: 4711, memoryMiB: 0 }],
      },
    ]);
    expect(await driver.sliceProfiles('GPU-old')).toEqual([]);
    await expect(driver.setMig('GPU-old', true)).rejects.toMatchObject({ name: 'GpuDriverError', code: 13 });
    await expect(driver.setExclusive('GPU-old', true)).rejects.toThrow('compute mode: no permission');
    const watch = await driver.watch(() => undefined);
    await watch.close();
    await driver.close();
  });

  test('is refused where it lacks what is needed, with the name of it', async () => {
    const library = await build('libolder.so', '-DWITHOUT_CORES');
    await expect(openNvidiaDriver({ nvml, clock: systemClock, library })).rejects.toThrow(
      'NVML lacks nvmlDeviceGetNumGpuCores: the driver is too old',
    );
  });

  test('is no stand-in', async () => {
    const library = await build('libreal.so');
    const opening = openNvidiaDriver({ nvml, clock: systemClock, library, simulator: '/tmp/none' });
    await expect(opening).rejects.toMatchObject({ name: 'GpuDriverError', code: 13 });
  });
});
