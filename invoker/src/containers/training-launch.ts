import { join, resolve } from 'node:path';
import type { TrainingSpec } from './container-factory.js';
import type { RuntimeLaunch } from './runtime-launch.js';

/** The folder of an invoker that holds the checkpoints of training jobs, each in a folder of the job's id. */
export const checkpointsFolder = (dataDir: string): string => join(resolve(dataDir), 'checkpoints');

/** The checkpoint folder of a job inside its sandbox. */
const inside = '/checkpoints';

/** The launch of a container for a run of a training job; `folder` has its checkpoints, undefined for none. */
export function launchForTraining(
  launch: RuntimeLaunch,
  { job, attempt, members, rendezvousMs }: TrainingSpec,
  folder: string | undefined,
): RuntimeLaunch {
  return {
    ...launch,
    binds: [
      ...launch.binds,
      ...(folder === undefined ? [] : [{ source: folder, target: inside, mode: 'rw' as const }]),
    ],
    env: {
      ...launch.env,
      GPUWHISK_JOB: job,
      GPUWHISK_JOB_ATTEMPT: String(attempt),
      GPUWHISK_JOB_MEMBERS: String(members),
      GPUWHISK_JOB_RENDEZVOUS_MS: String(rendezvousMs),
      ...(folder !== undefined && { GPUWHISK_CHECKPOINT_DIR: inside }),
    },
    // Runs of a job have one user of the host, so that each can write the files of those before.
    sharesUser: true,
  };
}
