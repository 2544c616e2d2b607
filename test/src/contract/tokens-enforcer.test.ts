import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { createTokensEnforcer } from '@gpuwhisk/invoker/gpu-agent/enforcers/tokens-enforcer';
import { startCudaClient } from '../gpu/cuda-client.js';
import { startMpsHome } from '../gpu/mps-home.js';
import { shareEnforcerContract, shareOf, type EnforcerHome } from './share-enforcer.js';

async function tokensHome(belowMps: boolean): Promise<EnforcerHome> {
  const { machine, device, enforcer: mps, close } = await startMpsHome();
  const enforcer = createTokensEnforcer({
    folder: join(machine.folder, 'tokens'),
    ...(belowMps && { under: mps }),
  });
  return {
    enforcer,
    device,
    async startClient({ env }) {
      const client = await startCudaClient(machine, env);
      const allocate = async (bytes: number): Promise<boolean> => (await client.ask(`alloc ${bytes}`))[0] === 0;
      return {
        pid: client.pid,
        // An allocation, because tokens intercept allocations but not synchronisation.
        works: () => allocate(1),
        allocate: (memoryMiB) => allocate(memoryMiB * 2 ** 20),
        end: client.end,
      };
    },
    async close() {
      await enforcer.close();
      await close();
    },
  };
}

shareEnforcerContract('kernel tokens on the stand-in', () => tokensHome(false));
shareEnforcerContract('kernel tokens below MPS on the stand-in', () => tokensHome(true));

test('a process that was started without the library is not confirmed', async () => {
  const home = await tokensHome(false);
  try {
    await home.enforcer.open(home.device);
    const { env, ...settings } = await home.enforcer.settings(home.device, shareOf(50));
    const { LD_PRELOAD, ...rest } = env;
    expect(LD_PRELOAD).toContain('libgpuwhisk-tokens.so');
    const client = await home.startClient({ ...settings, env: rest });
    await expect(home.enforcer.confirm({ pid: client.pid, device: home.device.uuid })).rejects.toMatchObject({
      name: 'ShareError',
      message: expect.stringContaining('has no tokens'),
    });
    await client.end();
  } finally {
    await home.close();
  }
});
