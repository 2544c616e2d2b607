import { workloadTable } from '@gpuwhisk/common/gpu';
import type { Workload } from '@gpuwhisk/common/gpu';
import type { JsonValue } from '@gpuwhisk/common/json';
import type { Logger } from '@gpuwhisk/common/logging';
import type { ClusterState } from '@gpuwhisk/common/state/cluster-state';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { HostProcesses } from './host/host-processes.js';

/** What looking for workloads that have ended takes. */
export interface EndedWorkloadsParts {
  invoker: string;
  state: ClusterState;
  processes: HostProcesses;
  clock: Clock;
  logger: Logger;
}

/** Looks from one to the next at the workloads. */
const every = 5;
/** Who started one tells its process at once; after so long it never will, ms. */
const untoldForMs = 60_000;

/**
 * Finds workloads of this node that were started with `wsk gpu workload run` and have ended without a word, as when that
 * was killed, and says so in their table: the keeper of the registrations removes them then.
 */
export class EndedWorkloads {
  private looks = 0;

  constructor(private readonly parts: EndedWorkloadsParts) {}

  /** To be called at every look at the devices. Never rejects. */
  async look(): Promise<void> {
    if (++this.looks % every !== 0) return;
    const { state, invoker, logger } = this.parts;
    try {
      for (const [id, row] of await state.rows(workloadTable)) {
        const workload = row as unknown as Workload;
        const isOurs = workload.invoker === invoker && workload.origin === 'started';
        if (!isOurs || !(await this.hasEnded(workload))) continue;
        // Said again until it is forgotten.
        if (workload.ended !== true) {
          logger.info({ workload: id, name: workload.name, pid: workload.pid }, 'a workload has ended without a word');
        }
        await state.setRow(workloadTable, id, { ...workload, ended: true } as unknown as JsonValue);
      }
    } catch (error) {
      logger.error({ error: String(error) }, 'the table of workloads cannot be read or written');
    }
  }

  private async hasEnded({ pid, processStart, since }: Workload): Promise<boolean> {
    const { processes, clock } = this.parts;
    if (pid === undefined) return clock.now() - since > untoldForMs;
    const start = await processes.startOf(pid);
    // Its number may be another process's by now.
    return start === undefined || (processStart !== undefined && start !== processStart);
  }
}
