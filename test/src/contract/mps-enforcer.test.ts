import { startCudaClient } from '../gpu/cuda-client.js';
import { describeOnStandIn, startMpsHome } from '../gpu/mps-home.js';
import type { EnforcerHome } from './share-enforcer.js';
import { shareEnforcerContract } from './share-enforcer.js';

async function mpsHome(): Promise<EnforcerHome> {
  const { machine, device, enforcer, close } = await startMpsHome();
  return {
    enforcer,
    device,
    async startClient({ env }) {
      const client = await startCudaClient(machine, env);
      const succeeds = async (command: string) => (await client.ask(command))[0] === 0;
      return {
        pid: client.pid,
        works: () => succeeds('sync'),
        allocate: (memoryMiB) => succeeds(`alloc ${memoryMiB * 1024 * 1024}`),
        end: client.end,
      };
    },
    close,
  };
}

describeOnStandIn('shares', () => shareEnforcerContract('MPS on the stand-in', mpsHome));
