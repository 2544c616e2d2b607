import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { kindsOf } from '@gpuwhisk/common/runtimes';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { createRuntimeCatalog } from '@gpuwhisk/invoker/runtimes/create-runtime-catalog';

const runtimesDir = fileURLToPath(new URL('../../../runtimes', import.meta.url));

/** The kinds of the repository's manifest that this machine has. */
export async function machineKinds(): Promise<string[]> {
  const dataDir = await mkdtemp(join(tmpdir(), 'gpuwhisk-catalog-'));
  try {
    return kindsOf((await createRuntimeCatalog({ runtimesDir, dataDir, clock: systemClock })).manifest);
  } finally {
    await rm(dataDir, { recursive: true, force: true });
  }
}
