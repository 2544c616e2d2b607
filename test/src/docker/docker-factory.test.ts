import { afterAll, beforeAll, describe } from '@jest/globals';
import { containerFactoryContract } from '../contract/container-factory.js';
import { hasDocker, startDocker } from './docker-engine.js';
import type { DockerEngine } from './docker-engine.js';
import { makeGuestImages, openDockerFactory } from './docker-harness.js';
import { isolationCases } from './isolation-cases.js';
import { platformCases } from './platform-cases.js';
import { foreignCases } from './foreign-cases.js';
import { troubleCases } from './trouble-cases.js';

const startTimeoutMs = 120_000;

(hasDocker ? describe : describe.skip)('Docker', () => {
  let engine: DockerEngine;
  beforeAll(async () => {
    engine = await startDocker();
    await makeGuestImages(engine);
  }, startTimeoutMs);
  afterAll(() => engine.stop(), startTimeoutMs);

  foreignCases(() => engine);
  isolationCases(() => engine);
  troubleCases(() => engine);
  platformCases(() => engine);
  // Runtimes with frames need no network, which the engine takes longest to make.
  containerFactoryContract('Docker factory', () => openDockerFactory(engine, { network: 'none' }));
});
