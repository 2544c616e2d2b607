import { join } from 'node:path';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { bareSpec } from '@gpuwhisk/invoker/containers/container-factory';
import { createProcessFactory } from '@gpuwhisk/invoker/containers/process/process-factory';
import { encodeFrame } from '@gpuwhisk/invoker/containers/protocol/frames';
import type { RuntimeLaunch } from '@gpuwhisk/invoker/containers/runtime-launch';
import { createRuntimeCatalog } from '@gpuwhisk/invoker/runtimes/create-runtime-catalog';
import type { Family } from '../api.js';
import type { BenchContext } from '../bench.js';
import { repositoryDir } from '../machine.js';

const memoryMiB = 256;
const helloType = 1;
const hello = encodeFrame(helloType, 0, JSON.stringify({ version: 1, kind: 'bare:1' })).toString('hex');

/** Programs that say hello and nothing else, with the least that the interpreter loads by itself. */
const programs: Readonly<Record<Family, readonly string[]>> = {
  nodejs: ['-e', `require('fs').writeSync(3, Buffer.from('${hello}', 'hex')); setInterval(() => {}, 1e9)`],
  python: [
    '-I',
    '-S',
    '-B',
    '-X',
    'utf8',
    '-c',
    `import posix, time; posix.write(3, bytes.fromhex('${hello}')); time.sleep(1e6)`,
  ],
};

/** Starts of bare interpreters in sandboxes. */
export interface BareStarts {
  /** Starts one and ends it; resolves with the time from the order to its hello, ms. */
  start(family: Family): Promise<number>;
  close(): Promise<void>;
}

/**
 * Sandboxes of the bench's own, as the platform makes them but for the link to the network, in which the interpreter of the
 * family's default kind says hello without any code of the runtimes: what no runtime can do without.
 */
export async function openBareStarts({ temporaryDir, cleanup }: BenchContext): Promise<BareStarts> {
  const dataDir = join(temporaryDir, 'bare');
  const catalog = await createRuntimeCatalog({
    runtimesDir: join(repositoryDir, 'runtimes'),
    dataDir,
    clock: systemClock,
  });
  const factory = createProcessFactory({ catalog, clock: systemClock, dataDir, actionNetwork: false });
  cleanup.add('bare sandboxes', () => factory.close());
  await factory.start();
  const launchOf = async (family: Family): Promise<RuntimeLaunch> => {
    const kind = catalog.manifest.runtimes[family]?.find((entry) => entry.default)?.kind;
    if (kind === undefined) throw new Error(`there is no default kind of '${family}'`);
    const launch = await catalog.launch(kind, [], memoryMiB);
    const [interpreter = ''] = launch.command;
    return { ...launch, command: [interpreter, ...programs[family]] };
  };
  const launches = { nodejs: await launchOf('nodejs'), python: await launchOf('python') };
  return {
    async start(family) {
      const startMs = performance.now();
      const container = await factory.launchContainer(bareSpec(`${family}:bare`, memoryMiB), launches[family]);
      const elapsedMs = performance.now() - startMs;
      await container.destroy();
      return elapsedMs;
    },
    close: () => factory.close(),
  };
}
