/** The ClusterState table of the rates that workloads report, by id. */
export const workloadReportTable = 'gpuWorkloadReports';

/** The last reports of a workload's rate, the newest last. */
export interface WorkloadReports {
  /** The last report and its time, epoch ms. */
  rate: number;
  reportedAt: number;
  /** Rates at least half a second apart, and the time of the last one, epoch ms. */
  recent: number[];
  keptAt: number;
  /** Rates while no function ran on the device. */
  alone: number[];
  /** When the baseline was last set from them, epoch ms; absent: never. */
  revisedAt?: number;
}
