import { describe } from '@jest/globals';
import { actuatorContract } from './actuator.js';
import { openLiveGpus } from './live-gpus.js';

describe('the live actuator', () => {
  actuatorContract(openLiveGpus);
});
