import type { ClusterFacts } from '@gpuwhisk/gpu/policies/inert-parts';
import type { ApiContext } from './api-context.js';

type Context = Pick<
  ApiContext,
  'gpuTable' | 'gpuWorkloads' | 'performanceViews' | 'procurement' | 'config' | 'changes'
>;

/** The facts of the cluster that parts of policies depend on, as they are now. */
export function clusterFacts(context: Context): ClusterFacts {
  const { gpuTable, gpuWorkloads, performanceViews, procurement, config, changes } = context;
  return {
    nodes: gpuTable.nodes(),
    workloads: gpuWorkloads.shown.length,
    get isProfiled() {
      return performanceViews.functions().some(({ shares }) => shares !== undefined);
    },
    rents: procurement !== undefined,
    trains: config.gpu.learning.retrain,
    isCluster: changes !== undefined,
  };
}
