import { policyCases } from '@gpuwhisk/gpu/testing/policy-cases';
import { baselines } from './register.js';

policyCases(baselines);
