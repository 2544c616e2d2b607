// The driver's libraries on a machine where only LD_LIBRARY_PATH names their folder.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { describeOnStandIn } from './mps-home.js';
import { standIn, startStandIn } from './stand-in.js';

const program = `
const { loadNvml } = await import(process.argv[1]);
const nvml = loadNvml();
const { session } = await nvml.open('libnvidia-ml.so.1', process.argv[2]);
console.log((await nvml.devices(session)).map(({ name }) => name).join());
await nvml.close(session);
`;

describeOnStandIn('the driver', () => {
  test('is found by LD_LIBRARY_PATH alone', async () => {
    const machine = await startStandIn('h100');
    const folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-driver-'));
    try {
      symlinkSync(standIn.nvml, join(folder, 'libnvidia-ml.so.1'));
      const module = import.meta.resolve('@gpuwhisk/invoker/gpu-agent/drivers/nvml');
      const ask = (path: string): string =>
        execFileSync(process.execPath, ['--input-type=module', '-e', program, module, machine.socket], {
          env: { PATH: process.env.PATH, LD_LIBRARY_PATH: path },
          encoding: 'utf8',
          stdio: ['ignore', 'pipe', 'ignore'],
          timeout: 30_000,
        });
      expect(ask(folder)).toBe('NVIDIA H100 80GB HBM3 (simulated)\n');
      expect(() => ask('/nonexistent')).toThrow(/Command failed/);
    } finally {
      rmSync(folder, { recursive: true });
      await machine.close();
    }
  });
});
