import type { GpuTruth, TruthClient } from '@gpuwhisk/gpu/simulate/replay';
import { effectiveShares, mpsSlowdowns, timesliceSlowdowns } from '@gpuwhisk/bench/replay/model/gpu-model';
import type { ModelParameters, ModelWorkload } from '@gpuwhisk/bench/replay/model/gpu-model';
import { contentionKey, contentionMember, contentionTable, type SampleSet } from '@gpuwhisk/bench/gpu/samples';

/** The model tier: any number of clients, under MPS or in turns. Throws RangeError for an unknown workload. */
export function modelTruth(
  parameters: ModelParameters,
  workloads: ReadonlyMap<string, ModelWorkload>,
  mode: 'mps' | 'timeslice' = 'mps',
): GpuTruth {
  const resolve = (clients: readonly TruthClient[]): { workload: ModelWorkload; share: number }[] =>
    clients.map(({ workload: name, share }) => {
      const workload = workloads.get(name);
      if (!workload) throw new RangeError(`the model has no workload '${name}'`);
      return { workload, share };
    });
  return {
    slowdowns: (clients) =>
      mode === 'mps' ? mpsSlowdowns(parameters, resolve(clients)) : timesliceSlowdowns(clients.length),
    used: (clients) =>
      effectiveShares(
        resolve(clients).map(({ workload, share }) => ({ share, saturation: workload.saturation })),
      ).reduce((sum, share) => sum + share, 0),
    noise: parameters.noise,
  };
}

/** A measured pair with the slowdown of each workload beside the other. */
export interface MeasuredPair {
  a: string;
  b: string;
  slowdownA: number;
  slowdownB: number;
}

/**
 * The lookup tier: measured slowdowns of one or two clients. Shares have no effect. Throws RangeError for a pair that
 * was not measured, and for more than two clients.
 */
export function lookupTruth(pairs: readonly MeasuredPair[], used: ReadonlyMap<string, number>): GpuTruth {
  const table = new Map<string, Float64Array>();
  for (const { a, b, slowdownA, slowdownB } of pairs) {
    table.set(`${a} + ${b}`, Float64Array.of(slowdownA, slowdownB));
    table.set(`${b} + ${a}`, Float64Array.of(slowdownB, slowdownA));
  }
  return {
    noise: 0,
    used: (clients) =>
      Math.min(
        1,
        clients.reduce((sum, { workload }) => sum + (used.get(workload) ?? 1), 0),
      ),
    slowdowns(clients) {
      const [first, second] = clients;
      if (clients.length > 2) throw new RangeError('more than two workloads together were not measured');
      if (!first || !second) return new Float64Array(clients.length).fill(1);
      const slowdowns = table.get(`${first.workload} + ${second.workload}`);
      if (!slowdowns) throw new RangeError(`${first.workload} beside ${second.workload} was not measured`);
      return slowdowns;
    },
  };
}

/**
 * The measured tier: slowdowns of the sets in the samples of a GPU, at the shares that were measured. Throws RangeError for
 * a set that was not measured. A set without a measured activity counts as one that uses the whole GPU.
 */
export function measuredTruth(set: SampleSet): GpuTruth {
  const table = contentionTable(set);
  const named = (clients: readonly TruthClient[]): string[] =>
    clients.map(({ workload, share }) => contentionMember(workload, share));
  return {
    noise: 0,
    used: (clients) => (clients.length === 0 ? 0 : (table.get(contentionKey(named(clients)))?.used ?? 1)),
    slowdowns(clients) {
      const names = named(clients);
      const found = table.get(contentionKey(names));
      return Float64Array.from(names, (name) => {
        const slowdown = found?.slowdowns.get(name);
        if (slowdown === undefined)
          throw new RangeError(`${names.join(' beside ')} was not measured on ${set.gpuType}`);
        return slowdown;
      });
    },
  };
}
