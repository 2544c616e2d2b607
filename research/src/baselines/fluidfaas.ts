import type { PolicyRecord } from '@gpuwhisk/gpu/stages/policy-record';

/** FluidFaaS (Hui and others, HPDC 2025): isolated slices in MIG's sizes, where they leave the least. */
export const fluidfaas: PolicyRecord = {
  summary: "slices of MIG's sizes, the smallest that meets the SLO",
  admit: 'before-slo',
  order: 'deadline-first',
  share: 'mig-sizes',
  place: 'best-fit',
};
