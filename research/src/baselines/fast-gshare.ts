import type { PolicyRecord } from '@gpuwhisk/gpu/stages/policy-record';

/**
 * FaST-GShare (Gu and others, ICPP 2023): the rectangle of share and time that a function takes goes where it leaves the
 * least over (the whole of the time, since a job here never pauses). Functions with an SLO go before the others.
 */
export const fastGshare: PolicyRecord = {
  summary: 'the share with most throughput for its size, packed as rectangles',
  admit: 'before-slo',
  order: 'deadline-first',
  share: 'most-efficient',
  place: 'best-fit',
};
