// Degradations beside workloads, learned from runs of functions and from reports of workloads (SMORE).
import { asMember, bySmore, ofTime } from '@gpuwhisk/gpu/predict/degradation';
import type { DegradationModel, SetMember } from '@gpuwhisk/gpu/predict/degradation';
import type { Member } from '@gpuwhisk/gpu/predict/degradation-predictor';
import type { FeatureRecord } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import { SmoreDegradation } from '@gpuwhisk/gpu/predict/smore-degradation';
import type { SmoreDegradationState } from '@gpuwhisk/gpu/predict/smore-degradation';
import type { Neighbour } from '@gpuwhisk/gpu/profile/run-log';
import type { ObservedRun } from '@gpuwhisk/gpu/view/decision';
import { functionKey } from '@gpuwhisk/gpu/view/occupancy';
import type { GpuState, Task, View, WorkloadState } from '@gpuwhisk/gpu/view/view';
import { workloadMember } from '@gpuwhisk/gpu/place/set-effects';

/** What ran beside a workload when it was looked at last. */
interface Look {
  reportedAt: number;
  /** The workloads and functions of its device. */
  set: string;
}

/** The predictor of degradations, and what feeds it. */
export class Degradations {
  private predictor = new SmoreDegradation();
  private looks = new Map<string, Look>();

  /** `onChange`: called when something was learned. */
  constructor(private readonly onChange: () => void) {}

  /** The model of a type of GPU in one mode, with all that is learned later. */
  modelOf({ type: gpuType, mode }: Pick<GpuState, 'type' | 'mode'>): DegradationModel {
    return bySmore({ term: (...pair) => this.predictor.term(...pair) }, { gpuType, mode });
  }

  /**
   * Learns from a warm run of a function beside these workloads and neighbours, all of which were there all the time.
   * `soloMs`: its time alone.
   */
  ran(
    { task, gpu, share, ranMs }: ObservedRun,
    workloads: readonly WorkloadState[],
    neighbours: readonly Neighbour[],
    soloMs: number,
  ): void {
    const functions = [{ task, share }, ...neighbours].map(functionMember);
    const members = membersOf(workloads.map(workloadMember), functions);
    const id = members[workloads.length]?.id ?? '';
    this.observe(gpu, members, id, ranMs / soloMs - 1);
  }

  /**
   * Learns from reports of workloads that came since the look before, if the same functions ran on the device then and now.
   * Called each second.
   */
  look(view: Pick<View, 'workloads' | 'gpus'>): void {
    const { workloads = [] } = view;
    const looks = new Map<string, Look>();
    for (const workload of workloads) {
      const gpu = view.gpus.find(({ id }) => id === workload.device);
      const { reportedAt } = workload;
      if (gpu === undefined || reportedAt === undefined) continue;
      const beside = workloads.filter(({ device }) => device === workload.device);
      const functions = gpu.running.map(functionMember);
      const set = JSON.stringify([beside.map(({ id }) => id), functions.map(({ name, share }) => [name, share])]);
      const last = this.looks.get(workload.id);
      looks.set(workload.id, { reportedAt, set });
      const isNew = last !== undefined && last.reportedAt < reportedAt && last.set === set;
      if (!isNew || workload.measured === undefined || functions.length === 0) continue;
      const members = membersOf(beside.map(workloadMember), functions);
      this.observe(gpu, members, members[beside.indexOf(workload)]?.id ?? '', ofTime(workload.measured));
    }
    this.looks = looks;
  }

  /** All that was learned, as JSON text. */
  text(): string {
    return JSON.stringify(this.predictor.state());
  }

  /** Takes what `text` gave. Throws RangeError for a state of another format or version. */
  restore(text: string): void {
    this.predictor = new SmoreDegradation({}, JSON.parse(text) as SmoreDegradationState);
  }

  private observe(
    { type: gpuType, mode }: Pick<GpuState, 'type' | 'mode'>,
    members: Member[],
    id: string,
    degradation: number,
  ): void {
    const [observed] = this.predictor.observe({ gpuType, mode, members }, [{ id, degradation }]);
    if (observed?.refused === undefined) this.onChange();
  }
}

function membersOf(workloads: readonly SetMember[], functions: readonly SetMember[]): Member[] {
  return [...workloads, ...functions].map(asMember);
}

/** A running function as a member of a set, by the name that placement knows it by. */
function functionMember({ task, share }: { task: Task; share: number }): SetMember {
  const record = task.featureRecord ?? (task.features as FeatureRecord | undefined);
  const name = functionKey({ action: task.function, namespace: task.namespace });
  return { kind: 'function', name, share, ...(record && { record }) };
}
