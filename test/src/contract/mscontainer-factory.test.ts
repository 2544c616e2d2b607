import { containerFactoryContract } from './container-factory.js';
import { hasLauncher, openMsContainerFactory } from './process-harness.js';

containerFactoryContract('mscontainer factory', () => openMsContainerFactory(), {
  ...(hasLauncher ? {} : { memory: 'the sandbox launcher is not built, so nothing watches the memory' }),
});
