import type { PolicyRecord } from '../../stages/policy-record.js';

/** What a device plugin does (FaaShare, section II-D). */
export const exclusive: PolicyRecord = {
  summary: 'whole GPUs, first come, first served',
  admit: 'before-slo',
  order: 'fifo',
  share: 'whole',
  place: 'first-fit',
};
