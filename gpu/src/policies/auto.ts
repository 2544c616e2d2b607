import { faashare } from './faashare.js';
import type { PolicyRecord } from './policy.js';

/** The default: FaaShare, and functions of which nothing is measured share a GPU by `FirstShare` instead of taking turns. */
export const auto: PolicyRecord = {
  ...faashare,
  summary: 'faashare, with two functions of which nothing is measured on a GPU from their first call',
  settings: { firstSlowdown: 1.35 },
};
