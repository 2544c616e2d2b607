import type { PolicyRecord } from './policy.js';

/**
 * PROTEAN (Bhasi and others, Middleware 2024): strict batches first (section 4.1), an instance for each batch (4.2), strict work on
 * the slice of least slowdown and best effort on the smallest (3 and 4.3). Processes share a slice without limits, as under
 * MPS alone.
 */
export const protean: PolicyRecord = {
  summary: 'strict batches on the slice that slows them down least, best effort on the smallest ones (PROTEAN)',
  admit: 'before-slo',
  order: 'protean',
  share: 'unlimited',
  place: 'protean',
  scale: 'protean',
};
