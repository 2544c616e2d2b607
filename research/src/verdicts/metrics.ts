// What a run of a scenario shows of a policy.
import type { ReplayJob, ReplayRun } from '@gpuwhisk/gpu/simulate/replay';
import { meanOf } from '@gpuwhisk/bench/statistics';
import { floodedBy } from './requests.js';

/** Names of metrics. Lower is better in all. */
export const metricNames = ['late', 'timeMs', 'restMs', 'makespanMs', 'beyond', 'othersMs'] as const;
export type MetricName = (typeof metricNames)[number];

/** The part of the first and of the last requests that counts in no metric: the system fills and empties there. */
const edgePart = 0.1;

/**
 * Metrics of a run. `late`: requests with an SLO without a result within it, of all with one; `timeMs`: mean time from
 * arrival to result, of all requests, and `restMs` of those without an SLO (one without a result counts until `endMs`, the end of the
 * run); `makespanMs`: from the first arrival to the last result, or to the end where some have none; `beyond`: part of the training jobs'
 * seconds in which their degradation was beyond `bound`; `othersMs`: mean time of the requests of all namespaces but the first,
 * whose requests are the flood. Where requests arrive over time, the first and the last tenth of them do not count.
 */
export function metricsOf(
  run: ReplayRun,
  jobs: readonly ReplayJob[],
  { isOpen, endMs, bound }: { isOpen: boolean; endMs: number; bound: number },
): Record<MetricName, number> {
  const inOrder = [...jobs].sort((a, b) => a.task.arrivedAt - b.task.arrivedAt);
  const edge = isOpen ? Math.floor(edgePart * jobs.length) : 0;
  const counted = inOrder.slice(edge, jobs.length - edge);
  const ended = new Map(run.finished.map(({ job, finishedAt }) => [job.task.id, finishedAt]));
  const last = ended.size < jobs.length ? endMs : Math.max(0, ...ended.values());
  const timeOf = ({ task: { id, arrivedAt } }: ReplayJob): number => (ended.get(id) ?? endMs) - arrivedAt;
  const strict = counted.filter(({ task }) => task.sloMs !== undefined);
  const late = strict.filter(({ task }) => {
    const at = ended.get(task.id);
    return at === undefined || at > task.arrivedAt + (task.sloMs ?? Infinity);
  });
  const mean = (some: readonly ReplayJob[]): number => (some.length === 0 ? 0 : meanOf(some.map(timeOf)));
  const seconds = run.workloads.flatMap((one) => one.seconds);
  return {
    late: strict.length === 0 ? 0 : late.length / strict.length,
    timeMs: mean(counted),
    restMs: mean(counted.filter(({ task }) => task.sloMs === undefined)),
    makespanMs: last - (inOrder[0]?.task.arrivedAt ?? 0),
    beyond: seconds.length === 0 ? 0 : seconds.filter(({ degradation }) => degradation > bound).length / seconds.length,
    othersMs: mean(counted.filter(({ task }) => task.namespace !== floodedBy)),
  };
}
