import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { runProgram } from '@gpuwhisk/invoker/host/programs';
import { controlStandIn } from './driver-client.js';
import { standIn, startStandIn } from './stand-in.js';
import type { StandIn } from './stand-in.js';

const onThisMachine = existsSync(standIn.daemon) ? describe : describe.skip;
const workloads = fileURLToPath(new URL('../../../runtimes/cuda', import.meta.url));
const timeoutMs = 60_000;
/** Time by the straight line of resnet50 in gpuwhisk_models.h, at a batch of 16 that fills the device, ns. */
const resnet50Ns = (2.196 + 16 * 0.603) * 1e6;

const python = `
import ctypes, json, struct
import gpuwhisk_sim as sim
model = sim.Model("resnet50")
model.infer(16)
n = 32
a, b, c = (sim.Memory(n * n * 4) for _ in range(3))
a.write(struct.pack(f"{n * n}f", *(i % 5 for i in range(n * n))))
b.write(struct.pack(f"{n * n}f", *(float(i // n == i % n) for i in range(n * n))))
kernels = sim.kernels()
kernels.launch("matmul", n * n // 256, a.pointer, b.pointer, c.pointer, ctypes.c_uint32(n))
try:
    refused = sim.Memory(1 << 40)
except sim.CudaError as error:
    refused = error.code
same = c.read() == a.read()
free, total = sim.memory_info()
model.close()
print(json.dumps({"same": same, "refused": refused, "heldMiB": (sim.memory_info()[0] - free) / 2**20}))
`;

const c = `
#include "gpuwhisk_sim.h"
int main(void) {
  gpuwhisk_model model;
  int unknown = gpuwhisk_model_open(&model, "none"), opened = gpuwhisk_model_open(&model, "resnet50");
  int ran = gpuwhisk_model_infer(&model, 16);
  gpuwhisk_model_close(&model);
  printf("%d %d %d", unknown, opened, ran);
}
`;

onThisMachine('workloads for functions on a GPU', () => {
  let sim: StandIn;
  beforeEach(async () => {
    sim = await startStandIn('a100-40', ['--context-ms', '2', '--module-ms', '0', '--first-launch-ms', '0']);
  });
  afterEach(() => sim.close());

  const environment = () => ({
    ...process.env,
    GPUWHISK_SIM_SOCKET: sim.socket,
    LD_LIBRARY_PATH: standIn.folder,
    PYTHONPATH: workloads,
    PYTHONDONTWRITEBYTECODE: '1',
  });
  const busyNs = async (): Promise<number> => JSON.parse(await controlStandIn(sim.socket, 'status', 0)).busyNs;

  test('take their time and memory from Python, and compute', async () => {
    const said = await runProgram('python3', ['-c', python], { timeoutMs, env: environment() });
    // Weights, and memory for a batch of 16.
    expect(JSON.parse(said)).toEqual({ same: true, refused: 2, heldMiB: 98 + 16 * 12 });
    expect((await busyNs()) / resnet50Ns).toBeCloseTo(1, 1);
  });

  test('take their time from C', async () => {
    const source = join(sim.folder, 'function.c');
    const program = join(sim.folder, 'function');
    writeFileSync(source, c);
    await runProgram('cc', ['-Wall', '-Wextra', '-Werror', `-I${workloads}`, '-o', program, source, '-ldl'], {
      timeoutMs,
    });
    expect(await runProgram(program, [], { timeoutMs, env: environment() })).toBe('500 0 0');
    expect((await busyNs()) / resnet50Ns).toBeCloseTo(1, 1);
  });

  test('are one table for both', async () => {
    const listed = await runProgram('python3', ['-c', 'import gpuwhisk_sim as s; print(" ".join(s.models()))'], {
      timeoutMs,
      env: environment(),
    });
    const rows = readFileSync(join(workloads, 'gpuwhisk_models.h'), 'utf8').matchAll(/^GPUWHISK_MODEL\((\w+),/gm);
    expect(listed.trim().split(' ')).toEqual([...rows].map(([, name]) => name).sort());
  });
});
