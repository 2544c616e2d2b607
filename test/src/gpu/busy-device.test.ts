import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { DeviceSample } from '@gpuwhisk/invoker/gpu-agent/drivers/gpu-driver';
import { startCudaClient } from './cuda-client.js';
import type { CudaClient } from './cuda-client.js';
import { describeOnStandIn, startMpsHome } from './mps-home.js';
import type { MpsHome } from './mps-home.js';
import { standIn } from './stand-in.js';

const models = fileURLToPath(new URL('../../../runtimes/cuda', import.meta.url));
/** Trains until the process is ended. */
const program = `
import gpuwhisk_sim
model = gpuwhisk_sim.Model('resnet50')
while True: model.train_step(32)
`;

/** Samples until the device shows its activity, which takes some samples. */
async function sampleWith(home: MpsHome, shows: (sample: DeviceSample) => boolean): Promise<DeviceSample> {
  let last: DeviceSample | undefined;
  for (let attempt = 0; attempt < 100; attempt++) {
    [last] = await home.driver.sample();
    if (last && shows(last)) return last;
    await new Promise((done) => setTimeout(done, 200));
  }
  throw new Error(`Not within 20 s; at last: ${JSON.stringify(last)}`);
}

describeOnStandIn('a busy device', () => {
  let home: MpsHome;
  let busy: ChildProcess;
  let idle: CudaClient;
  const start = async (gpus: string): Promise<void> => {
    home = await startMpsHome(gpus);
    const env = { LD_LIBRARY_PATH: standIn.folder, GPUWHISK_SIM_SOCKET: home.machine.socket, PYTHONPATH: models };
    busy = spawn('python3', ['-c', program], {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, ...env },
    });
    idle = await startCudaClient(home.machine, { CUDA_VISIBLE_DEVICES: home.device.uuid });
  };
  afterEach(async () => {
    const ended = new Promise((resolve) => busy.once('close', resolve));
    busy.kill('SIGKILL');
    await Promise.all([ended, idle.end()]);
    await home.close();
  });

  const rateOf = ({ processes }: DeviceSample, pid = 0): number | undefined =>
    processes.find((process) => process.pid === pid)?.utilisation;

  describe('from Hopper on', () => {
    beforeEach(() => start('h100x1'));

    test('shows how much of its SMs and of its memory is used, and by whom', async () => {
      const isBusy = (sample: DeviceSample): boolean =>
        (sample.utilisation ?? 0) > 0.2 && (sample.smActivity ?? 0) > 0.1 && (rateOf(sample, busy.pid) ?? 0) > 0.1;
      const sample = await sampleWith(home, isBusy);
      expect(sample.dramActivity).toBeGreaterThan(0);
      expect(sample.dramActivity).toBeLessThanOrEqual(1);
      expect(sample.smActivity).toBeLessThanOrEqual(1);
      expect(rateOf(sample, busy.pid)).toBeLessThanOrEqual(1);
      expect(rateOf(sample, idle.pid)).toBe(0);
      expect(sample.powerW).toBeGreaterThan(70);
    });
  });

  describe('before Hopper', () => {
    beforeEach(() => start('a100-40x1'));

    test('shows no activity of SMs, but who is busy', async () => {
      const sample = await sampleWith(home, (one) => (rateOf(one, busy.pid) ?? 0) > 0.1);
      expect(sample.smActivity).toBeUndefined();
      expect(sample.dramActivity).toBeUndefined();
      expect(rateOf(sample, idle.pid)).toBe(0);
    });
  });
});
