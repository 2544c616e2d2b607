import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { createDockerFactory } from '@gpuwhisk/invoker/containers/docker/docker-factory';
import type { DockerContainerFactory, DockerFactoryOptions } from '@gpuwhisk/invoker/containers/docker/docker-factory';
import { kind } from '../contract/container-calls.js';
import { noEngineTimers, writeGuestProgram } from '../contract/guest-program.js';
import { writeHttpGuestProgram } from '../contract/http-guest-program.js';
import { entryInside, importImage, makeRoot, nodeInside } from './base-image.js';
import type { DockerEngine } from './docker-engine.js';

/** The kind of the image that speaks HTTP. */
export const httpKind = 'http:1';

const images: Record<string, string> = { [kind]: 'gpuwhisk/test-framed:1', [httpKind]: 'gpuwhisk/test-http:1' };

/**
 * Makes the images of the two guests, and one of the same file system that runs the program its container's command
 * names.
 */
export async function makeGuestImages(engine: DockerEngine): Promise<void> {
  const root = makeRoot(engine.folder, ['/bin/sh', '/bin/sleep', '/bin/true']);
  writeGuestProgram(join(root, 'opt/gpuwhisk/guest.mjs'));
  writeHttpGuestProgram(join(root, 'opt/gpuwhisk/http-guest.mjs'));
  await importImage(engine, 'gpuwhisk/test-framed:1', root, [
    `ENTRYPOINT ${JSON.stringify([entryInside])}`,
    `CMD ${JSON.stringify([nodeInside, noEngineTimers, '/opt/gpuwhisk/guest.mjs'])}`,
    'LABEL gpuwhisk.protocol=framed',
    'USER 1000:1000',
  ]);
  const derived = async (name: string, lines: readonly string[]): Promise<void> => {
    const folder = mkdtempSync(join(engine.folder, 'build-'));
    const file = join(folder, 'Dockerfile');
    writeFileSync(file, ['FROM gpuwhisk/test-framed:1', ...lines].join('\n'));
    await engine.docker(['build', '-q', '-t', name, folder], { DOCKER_BUILDKIT: '0' });
  };
  await derived('gpuwhisk/test-http:1', [
    `ENTRYPOINT ${JSON.stringify([nodeInside, '/opt/gpuwhisk/http-guest.mjs'])}`,
    'CMD []',
    'LABEL gpuwhisk.protocol=',
  ]);
  await derived('gpuwhisk/test-ends:1', ['ENTRYPOINT ["/bin/true"]', 'CMD []', 'LABEL gpuwhisk.protocol=']);
  await derived('gpuwhisk/test-nothing:1', ['ENTRYPOINT ["/no/such/program"]', 'CMD []', 'LABEL gpuwhisk.protocol=']);
  await derived('gpuwhisk/test-mute:1', ['CMD ["/bin/true"]']);
}

/** A factory in a folder of its own. */
export interface DockerHarness {
  factory: DockerContainerFactory;
  dataDir: string;
  notes: string[];
  close(): Promise<void>;
}

/** Opens a Docker factory over the test's images; other kinds `blackbox:IMAGE` are images of that name. */
export async function openDockerFactory(
  engine: DockerEngine,
  options: Partial<DockerFactoryOptions> = {},
): Promise<DockerHarness> {
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'gpuwhisk-data-'));
  const factory = createDockerFactory({
    catalog: {
      supports: (wanted) => wanted in images,
      imageOf: (wanted) => images[wanted] ?? /^blackbox:(.+)$/.exec(wanted)?.[1],
      isLocal: (image) => image.startsWith('gpuwhisk/'),
    },
    clock: systemClock,
    socketPath: engine.socketPath,
    instance: 0,
    poolMemoryMiB: 4096,
    ...options,
    dataDir,
  });
  const { notes } = await factory.start();
  return {
    factory,
    dataDir,
    notes,
    async close() {
      await factory.close();
      if (options.dataDir === undefined) rmSync(dataDir, { recursive: true, force: true });
    },
  };
}
