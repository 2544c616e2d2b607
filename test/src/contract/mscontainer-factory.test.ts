import { expect, test } from '@jest/globals';
import { bareSpec } from '@gpuwhisk/invoker/containers/container-factory';
import { createMsContainerFactory } from '@gpuwhisk/invoker/containers/mscontainer/mscontainer-factory';
import { kind } from './container-calls.js';
import { containerFactoryContract } from './container-factory.js';
import { hasLauncher, openMsContainerFactory, openProcessFactory } from './process-harness.js';

containerFactoryContract('mscontainer factory', () => openMsContainerFactory(), {
  ...(hasLauncher ? {} : { memory: 'the sandbox launcher is not built, so nothing watches the memory' }),
});

test('where a pair does not start, a plain process is made ready, and the log says why', async () => {
  const warnings: string[] = [];
  const logger = { info: () => undefined, warn: (message: string) => void warnings.push(message) };
  const harness = await openProcessFactory({}, (processes, catalog) =>
    createMsContainerFactory({
      processes,
      catalog: {
        ...catalog,
        launch: async (...wanted) => {
          const launch = await catalog.launch(...wanted);
          return { ...launch, pair: { ...launch, command: ['/bin/false'] } };
        },
      },
      logger,
    }),
  );
  try {
    const container = await harness.factory.prewarm(bareSpec(kind, 128));
    expect(container.msContainer).toBeUndefined();
    await container.destroy();
    expect(warnings).toEqual([expect.stringMatching(/^A plain process is made ready instead of a pair\. ./)]);
  } finally {
    await harness.close();
  }
});
