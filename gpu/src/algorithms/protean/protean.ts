import type { PolicyRecord } from '../../stages/policy-record.js';

/**
 * PROTEAN (Bhasi and others, Middleware 2024): strict batches first (section 4.1), an instance for each batch (4.2), strict work on
 * the slice of least slowdown and best effort on the smallest (3 and 4.3), slices cut for the best effort that is expected
 * (4.4), and nodes at spot prices where a provider is configured (4.5). Processes share a slice without limits, as under MPS
 * alone.
 */
export const protean: PolicyRecord = {
  summary: 'strict batches on the slice that slows them down least, best effort on the smallest ones (PROTEAN)',
  admit: 'before-slo',
  order: 'protean',
  share: 'unlimited',
  place: 'protean',
  scale: 'protean',
  geometry: 'protean',
  procure: 'protean',
  asksPredicted: true,
};
