import type { FactFilter } from './fact-filter.js';

/** Work of several devices needs an MPS server of its own, and a workload is a client of the device's. */
export const serverForGangs: FactFilter = {
  code: 'workloads',
  refuses: ({ mode, workloads }, { gpus }) => gpus > 1 && mode === 'mps' && workloads > 0,
  explain: ({ workloads }) => ({ reason: 'workloads are clients of its MPS server', numbers: { workloads } }),
};
