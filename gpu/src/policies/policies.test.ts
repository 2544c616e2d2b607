import { policyCases } from '../testing/policy-cases.js';
import { policies } from './registry.js';

policyCases(Object.keys(policies));
