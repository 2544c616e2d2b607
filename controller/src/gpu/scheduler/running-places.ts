// The places of the cluster with what runs on them.
import type { GpuKind } from '@gpuwhisk/common/gpu';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { RunLog } from '@gpuwhisk/gpu/stages/profile/run-log';
import { tasksMiB } from '@gpuwhisk/gpu/ledger/account';
import type { PlaceAccount } from '@gpuwhisk/gpu/ledger/account';
import { kindOf } from '@gpuwhisk/gpu/ledger/places';
import { runningOn } from '@gpuwhisk/gpu/view/running';
import { takesWork } from '@gpuwhisk/gpu/ledger/used-places';
import type { KnownRuns, RunningTask } from '@gpuwhisk/gpu/view/view';
import { hasForeignProcesses } from '../learning/activity-profiler.js';
import type { GpuPlacer } from './gpu-placer.js';

/** A GPU or MIG instance that takes work, and whether it is free. */
export interface SampledPlace extends GpuKind {
  id: string;
  /** For tasks in all, MiB. */
  memoryMiB: number;
  /** Nothing uses it but samples, since they give way to all work. */
  isFree: boolean;
  /** Nothing runs there. */
  isEmpty: boolean;
}

/** Tells what runs on the places that take work, by the log of runs. */
export class RunningPlaces {
  constructor(
    private readonly placer: Pick<GpuPlacer, 'accounts' | 'heldOn'>,
    private readonly runs: Pick<RunLog, 'get'>,
    private readonly clock: Pick<Clock, 'now'>,
  ) {}

  /** The places that take work, on live nodes. */
  used(): PlaceAccount[] {
    return this.placer.accounts().filter(({ health }) => takesWork(health));
  }

  /** The tasks on a place; `known`: the runs that are known, as a rule those of the log. */
  runningOn(account: PlaceAccount, known: KnownRuns = (id) => this.runs.get(id)): RunningTask[] {
    return runningOn(account, this.placer.heldOn(account.id), known, this.clock.now());
  }

  /** They for samples. */
  sampled(): SampledPlace[] {
    const isSample = ({ task }: RunningTask): boolean => this.runs.get(task.id)?.isSample === true;
    return this.used().map((account) => {
      const { id, place, busy } = account;
      const isFree = !hasForeignProcesses(place.status) && this.runningOn(account).every(isSample);
      return { id, ...kindOf(place), memoryMiB: tasksMiB(account), isFree, isEmpty: busy === 0 };
    });
  }
}
