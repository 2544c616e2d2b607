// The view of the live cluster; its parts are made when a policy first reads them.
import type { PlaceAccount } from '@gpuwhisk/gpu/ledger/ledger';
import type { Reservation } from '@gpuwhisk/gpu/ledger/occupancy';
import type { FunctionState, KnownRuns, ProcurementState, Task, View, WorkloadState } from '@gpuwhisk/gpu/view/view';
import { seenDevices, seenInstances, seenNodes } from './cluster-view.js';
import type { KnownInstances } from './cluster-view.js';
import type { GpuPlacer } from './gpu-placer.js';

/** Parts of a view that others make. */
export interface ViewParts {
  /** Epoch ms. */
  at: number;
  waiting: readonly Task[];
  instances: Pick<KnownInstances, 'isLaunch' | 'isRetiring'>;
  runs: KnownRuns;
  functions(): readonly FunctionState[];
  workloads(): readonly WorkloadState[];
  procurement(): ProcurementState | undefined;
}

/** The view of the cluster. Throws an Error if another controller is the leader. */
export function viewOf(
  placer: GpuPlacer,
  { at, waiting, instances, runs, functions, workloads, procurement }: ViewParts,
): View {
  const heldOn = (id: string): Iterable<Reservation> => placer.heldOn(id);
  const accounts = (): readonly PlaceAccount[] => placer.accounts();
  const madeInstances = once(() => seenInstances(accounts(), { ...instances, heldOn }));
  const madeFunctions = once(functions);
  return {
    at,
    waiting,
    ledger: placer.open(),
    runs,
    get instances() {
      return madeInstances();
    },
    get functions() {
      return madeFunctions();
    },
    get nodes() {
      return seenNodes(placer.rows());
    },
    get devices() {
      return seenDevices(placer.rows());
    },
    get workloads() {
      return workloads();
    },
    get procurement() {
      return procurement();
    },
  };
}

function once<Value>(make: () => Value): () => Value {
  let made: { value: Value } | undefined;
  return () => (made ??= { value: make() }).value;
}
