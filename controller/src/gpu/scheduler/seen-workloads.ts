// Workloads in the form that policies see.
import { groupedBy } from '@gpuwhisk/common/collections';
import type { Workload } from '@gpuwhisk/common/gpu';
import type { WorkloadState } from '@gpuwhisk/gpu/view/view';
import { standingOf } from '@gpuwhisk/gpu/view/workload-standing';

/** How long a list of workloads is used for decisions, ms: they report once a second. */
const freshMs = 100;

/** The workloads as policies see them; decisions within 100 ms see the same list. */
export class SeenWorkloads {
  private list: readonly WorkloadState[] = [];
  private byDevice = new Map<string, WorkloadState[]>();
  private madeAt = -Infinity;

  constructor(private readonly shown: () => readonly Workload[]) {}

  /** All workloads at `at`, epoch ms. */
  at(at: number): readonly WorkloadState[] {
    // The clock may have been set back.
    if (Math.abs(at - this.madeAt) >= freshMs) {
      this.list = this.shown().map((one) => seenWorkload(one, at));
      this.madeAt = at;
      this.byDevice = groupedBy(this.list, ({ device }) => device);
    }
    return this.list;
  }

  /** The workloads of a device, by UUID. */
  on(device: string, at: number): readonly WorkloadState[] {
    this.at(at);
    return this.byDevice.get(device) ?? [];
  }
}

function seenWorkload(workload: Workload, at: number): WorkloadState {
  const { id, name, invoker, device, maxDegradation, baselineRate, baselineFrom, rate, reportedAt } = workload;
  const { estimatedDegradation: estimated, mpsPercent, features: declared, measuredFeatures } = workload;
  const standing = standingOf(workload, at);
  // One that is held to a part of the SMs fills no more.
  const features = { ...(mpsPercent !== undefined && { smUtil: mpsPercent / 100 }), ...declared, ...measuredFeatures };
  return {
    ...{ id, name, node: invoker, device, tolerated: maxDegradation },
    ...(Object.keys(features).length > 0 && { features }),
    ...(baselineRate !== undefined && { baseline: baselineRate, baselineFrom: baselineFrom ?? 'declared' }),
    ...(rate !== undefined && reportedAt !== undefined && { rate, reportedAt }),
    ...(standing?.degradation !== undefined && { measured: standing.degradation }),
    ...(standing?.degradation === undefined && estimated !== undefined && { estimated }),
    ...(standing && { state: standing.state }),
  };
}
