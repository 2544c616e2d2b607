// What a simulated actuator is made with, and what it knows of devices and of runs that are over.
import type { ReplayJob, GpuTruth } from './replay.js';
import type { Run, SimulatedGpu, SimulatedPlace } from './simulated-gpu.js';
import type { SimulatedProvider } from './simulated-provider.js';
import type { ActionTimes } from './simulated-times.js';
import type { SimulatedWorkload } from './simulated-workload.js';
import type { StartPool } from './start-pool.js';

/** What a SimulatedActuator is made with. */
export interface SimulatedParts {
  places: readonly SimulatedPlace[];
  /** Instances stay after their runs. */
  keepsInstances: boolean;
  /** GPUs of a node that can be taken; absent: none can. */
  more?: readonly Omit<SimulatedPlace, 'id' | 'node' | 'idle'>[];
  /** Who rents them out; absent: each that is asked for comes, and stays. */
  provider?: SimulatedProvider;
  /** Pre-warmed processes; absent: each start takes what its job says. */
  pool?: StartPool;
  /** Training jobs on them; absent: none. */
  workloads?: readonly SimulatedWorkload[];
  /** Why the driver refuses to cut an empty device so; undefined, and absent: it does not. */
  cutFails?(device: string, profiles: readonly string[]): string | undefined;
  truth: GpuTruth;
  times: ActionTimes;
  /** The last request of a function; undefined: none has come. */
  known(work: { action: string; namespace: string }): ReplayJob | undefined;
}

/** A run that is over. */
export interface EndedRun {
  run: Run;
  gpu: SimulatedGpu;
  /** It was stopped before its end. */
  isStopped: boolean;
}

/** A device as it is without slices. */
export interface Whole {
  place: SimulatedPlace;
  /** Profiles that it is to be cut into, once nothing is on the slices that go; absent: it stays as it is. */
  wanted?: readonly string[];
  /** Profiles that it is being cut into. */
  cutting?: readonly string[];
  /** The last cut that failed, after which it has its former slices. */
  refused?: { profiles: readonly string[]; refused: string };
}
