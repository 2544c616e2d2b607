import type { Device } from '@gpuwhisk/common/gpu';
import { createSimulatedDriver } from '@gpuwhisk/invoker/gpu-agent/drivers/simulated-driver';
import { noEnforcer } from '@gpuwhisk/invoker/gpu-agent/enforcers/no-enforcer';
import { createSimulatedEnforcer } from '@gpuwhisk/invoker/gpu-agent/enforcers/simulated-enforcer';
import type { EnforcerHome } from './share-enforcer.js';
import { shareEnforcerContract } from './share-enforcer.js';

async function firstDevice(): Promise<Device> {
  const [device] = await createSimulatedDriver(['a100-40']).devices();
  return device as Device;
}

let pids = 5000;

async function simulatedHome(): Promise<EnforcerHome> {
  const enforcer = createSimulatedEnforcer();
  const device = await firstDevice();
  return {
    enforcer,
    device,
    async startClient({ env }) {
      const client = { pid: ++pids, device: env.CUDA_VISIBLE_DEVICES ?? '' };
      enforcer.connect(client);
      const works = async () => (await enforcer.clients(device.uuid)).some(({ pid }) => pid === client.pid);
      return { pid: client.pid, works, allocate: works, end: async () => enforcer.disconnect(client.pid) };
    },
    close: () => enforcer.close(),
  };
}

async function plainHome(): Promise<EnforcerHome> {
  const enforcer = noEnforcer();
  const yes = async () => true;
  return {
    enforcer,
    device: await firstDevice(),
    startClient: async () => ({ pid: ++pids, works: yes, allocate: yes, end: async () => undefined }),
    close: () => enforcer.close(),
  };
}

shareEnforcerContract('simulated enforcer', simulatedHome, { processes: false });
shareEnforcerContract('no enforcer', plainHome, { enforces: false });
