import { createAutoMps } from '@gpuwhisk/invoker/gpu-agent/enforcers/auto-mps';
import { startCudaClient } from '../gpu/cuda-client.js';
import { describeOnStandIn, startMpsHome } from '../gpu/mps-home.js';
import { standIn } from '../gpu/stand-in.js';
import type { EnforcerHome } from './share-enforcer.js';
import { shareEnforcerContract } from './share-enforcer.js';

async function mpsHome(isAutomatic: boolean): Promise<EnforcerHome> {
  const { machine, device, driver, enforcer, makeEnforcer, close } = await startMpsHome();
  const own = makeEnforcer({ manage: true, setsMode: false });
  const env = { GPUWHISK_SIM_SOCKET: machine.socket, LD_LIBRARY_PATH: standIn.folder };
  const automatic = createAutoMps({ driver, own, env });
  return {
    enforcer: isAutomatic ? automatic : enforcer,
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
    async close() {
      await automatic.close();
      await close();
    },
  };
}

describeOnStandIn('shares', () => {
  shareEnforcerContract('MPS on the stand-in', () => mpsHome(false));
  shareEnforcerContract('MPS on the stand-in, automatically', () => mpsHome(true));
});
