import { containerFactoryContract } from './container-factory.js';
import { hasLauncher, openProcessFactory } from './process-harness.js';

containerFactoryContract('process factory', () => openProcessFactory(), {
  ...(hasLauncher ? {} : { memory: 'the sandbox launcher is not built, so nothing watches the memory' }),
});
