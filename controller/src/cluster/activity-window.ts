import { activityChannel, addActivity, countsOf, noActivity } from '@gpuwhisk/common/activations/activity';
import type { ActivityCounts, ActivityReport, GpuRun } from '@gpuwhisk/common/activations/activity';
import type { ClusterState } from '@gpuwhisk/common/state/cluster-state';
import type { Clock } from '@gpuwhisk/common/system/clock';

/** Length of the window, s. */
export const windowS = 300;
/** Reports of a second arrive until so many seconds later. */
const settledS = 2;
/** Devices whose runs are kept, and runs of one. */
const [maxDevices, maxRuns] = [10_000, 60];

/** A second of the window: all together, and by namespace. */
interface Second {
  /** Since the epoch. */
  at: number;
  total: ActivityCounts;
  byNamespace: Map<string, ActivityCounts>;
}

/** Counts of one second. */
export interface ActivitySecond extends ActivityCounts {
  /** Epoch s. */
  second: number;
}

/**
 * What the cluster has run in the last `windowS` seconds, as its processes report it. A report counts for the second in
 * which it arrives, whatever the clock of its sender says. The window is empty when the controller starts.
 */
export class ActivityWindow {
  /** By the second modulo `windowS`. */
  private readonly seconds: (Second | undefined)[] = new Array<undefined>(windowS);
  /** The last runs of each device, oldest first; the device that ran last is last. */
  private readonly runs = new Map<string, GpuRun[]>();
  private readonly sinceS: number;

  constructor(
    private readonly state: Pick<ClusterState, 'subscribe'>,
    private readonly clock: Pick<Clock, 'now'>,
  ) {
    this.sinceS = this.nowS();
  }

  /** Starts to listen. Rejects with StateUnavailableError. */
  async open(): Promise<void> {
    await this.state.subscribe(activityChannel, (message) => this.take(message as unknown as ActivityReport));
  }

  /** The settled seconds of the window, oldest first; of one namespace, or of all without a name. */
  recent(namespace?: string): ActivitySecond[] {
    const to = this.nowS() - settledS;
    const found: ActivitySecond[] = [];
    for (let at = Math.max(this.sinceS, to - windowS + settledS + 1); at <= to; at++) {
      const known = this.seconds[at % windowS];
      const isOf = known?.at === at ? known : undefined;
      const counts = namespace === undefined ? isOf?.total : isOf?.byNamespace.get(namespace);
      found.push({ second: at, ...(counts ?? noActivity()) });
    }
    return found;
  }

  /** The last runs on a device whose time was predicted, oldest first. */
  runsOn(device: string): readonly GpuRun[] {
    return this.runs.get(device) ?? [];
  }

  private nowS(): number {
    return Math.floor(this.clock.now() / 1000);
  }

  private take({ counts, runs }: ActivityReport): void {
    const at = this.nowS();
    let second = this.seconds[at % windowS];
    if (second?.at !== at) {
      second = { at, total: noActivity(), byNamespace: new Map() };
      this.seconds[at % windowS] = second;
    }
    for (const [namespace, more] of Object.entries(counts)) {
      addActivity(second.total, more);
      addActivity(countsOf(second.byNamespace, namespace), more);
    }
    for (const run of runs) this.keep(run);
  }

  private keep(run: GpuRun): void {
    const kept = this.runs.get(run.device) ?? [];
    kept.push(run);
    if (kept.length > maxRuns) kept.shift();
    this.runs.delete(run.device);
    this.runs.set(run.device, kept);
    const [oldest] = this.runs.keys();
    if (this.runs.size > maxDevices && oldest !== undefined) this.runs.delete(oldest);
  }
}
