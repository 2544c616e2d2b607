import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe } from '@jest/globals';
import { systemClock } from '@gpuwhisk/common/system/clock';
import type { Device } from '@gpuwhisk/common/gpu';
import type { GpuDriver } from '@gpuwhisk/invoker/gpu-agent/drivers/gpu-driver';
import { openNvidiaDriver } from '@gpuwhisk/invoker/gpu-agent/drivers/nvidia-driver';
import { loadNvml } from '@gpuwhisk/invoker/gpu-agent/drivers/nvml';
import { createMpsEnforcer } from '@gpuwhisk/invoker/gpu-agent/enforcers/mps-enforcer';
import type { MpsEnforcer, MpsEnforcerOptions } from '@gpuwhisk/invoker/gpu-agent/enforcers/mps-enforcer';
import type { ShareEnforcer } from '@gpuwhisk/invoker/gpu-agent/enforcers/share-enforcer';
import { runProgram } from '@gpuwhisk/invoker/host/programs';
import { standIn, startStandIn } from './stand-in.js';
import type { StandIn } from './stand-in.js';

/** A suite of NVML and MPS on the stand-in, which requires a C++ compiler. */
export function describeOnStandIn(name: string, cases: () => void): void {
  (existsSync(standIn.daemon) ? describe : describe.skip)(name, cases);
}

/** The stand-in with MPS. */
export interface MpsHome {
  machine: StandIn;
  driver: GpuDriver;
  device: Device;
  enforcer: ShareEnforcer;
  /** Makes another enforcer of the same machine, for instance that of a restarted platform. */
  makeEnforcer(options?: Partial<MpsEnforcerOptions>): MpsEnforcer;
  /** Runs a command of nvidia-cuda-mps-control, with the clients' pipe directory. */
  control(command: string, env: Record<string, string>, args?: string[]): Promise<string>;
  close(): Promise<void>;
}

/** One GPU, its driver, and an enforcer that is not open yet. */
export async function startMpsHome(gpus = 'a100-40x1'): Promise<MpsHome> {
  const nvml = loadNvml();
  if (!nvml) throw new Error('native/build/nvml.node is missing: it takes a C++ compiler.');
  const machine = await startStandIn(gpus, ['--context-ms', '10']);
  const driver = await openNvidiaDriver({ nvml, clock: systemClock, library: standIn.nvml, simulator: machine.socket });
  const [device] = await driver.devices();
  const env = { GPUWHISK_SIM_SOCKET: machine.socket };
  const makeEnforcer = (options: Partial<MpsEnforcerOptions> = {}): MpsEnforcer =>
    createMpsEnforcer({
      driver,
      folder: join(machine.folder, 'mps'),
      manage: false,
      control: { program: standIn.mpsControl, env },
      foreignPipe: join(machine.folder, 'foreign'),
      ...options,
    });
  const enforcer = makeEnforcer();
  return {
    machine,
    driver,
    device: device as Device,
    enforcer,
    makeEnforcer,
    control: (command, more, args = []) =>
      runProgram(standIn.mpsControl, args, { timeoutMs: 20_000, env: { ...env, ...more }, input: `${command}\n` }),
    async close() {
      await enforcer.close();
      await driver.close();
      await machine.close();
    },
  };
}
