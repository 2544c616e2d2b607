import { auto } from '../algorithms/auto/auto.js';
import { dilu } from '../algorithms/dilu/dilu.js';
import { exclusive } from '../algorithms/exclusive/exclusive.js';
import { faashare } from '../algorithms/faashare/faashare.js';
import { leastLoaded } from '../algorithms/least-loaded/least-loaded.js';
import { protean } from '../algorithms/protean/protean.js';
import { smore } from '../algorithms/smore/smore.js';
import type { PolicyRecord } from '../stages/policy-record.js';

const known: Record<string, PolicyRecord> = {
  auto,
  faashare,
  'least-loaded': leastLoaded,
  smore,
  dilu,
  protean,
  exclusive,
};

/** Every policy by its name, those of policy modules included. */
export const policies: Readonly<Record<string, PolicyRecord>> = known;

/** Adds a policy of a policy module; its name must be free. The result removes it. */
export function addPolicy(name: string, policy: PolicyRecord): () => void {
  known[name] = policy;
  return () => delete known[name];
}
