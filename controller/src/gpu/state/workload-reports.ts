// Baselines of workloads from the rates that they report.
import type { NodeStatus, Workload } from '@gpuwhisk/common/gpu';
import type { WorkloadReports } from '@gpuwhisk/common/workload-reports';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { median } from '@gpuwhisk/gpu/stages/profile/fill';
import type { GpuTable } from './gpu-table.js';

/** Rates that are kept of a workload's reports, and of those without a function on its device. */
const [mostRecent, mostAlone] = [30, 15];
/** Fewest rates alone that make a baseline. */
const leastAlone = 5;
/** Shortest time between rates that are kept, ms: a burst of reports is one. */
const keepEveryMs = 500;
/** A baseline is replaced by a measured one if all kept rates have a median above this many times the baseline. */
const raiseAbove = 1.2;
/** Shortest time between two revisions of a baseline, ms, and the least relative change: each is written to the store. */
const [reviseEveryMs, leastChange] = [10_000, 0.02];
/** Longest part of a report's past in which no function may have run for it to count as alone, ms. */
const longestStepMs = 600_000;

/** A report. */
interface Report {
  rate: number;
  /** Epoch ms. */
  at: number;
  /** Whether no function ran on the device meanwhile. */
  isAlone: boolean;
  /** Whether no step ended, so that the rate is only what the present step can still reach. It makes no baseline then. */
  isStalled: boolean;
}

/** The reports of a workload after one more. */
export function withReport(
  before: WorkloadReports | undefined,
  { rate, at, isAlone, isStalled }: Report,
): WorkloadReports {
  const { recent, alone, keptAt, ...known } = before ?? { recent: [], alone: [], keptAt: -Infinity };
  const isKept = !isStalled && Math.abs(at - keptAt) >= keepEveryMs;
  return {
    ...known,
    ...{ rate, reportedAt: at },
    ...{ recent: isKept ? [...recent, rate].slice(-mostRecent) : recent, keptAt: isKept ? at : keptAt },
    alone: isKept && isAlone ? [...alone, rate].slice(-mostAlone) : alone,
  };
}

/** Median of the rates alone; undefined if there are too few. */
export function aloneRateOf({ alone }: Pick<WorkloadReports, 'alone'>): number | undefined {
  return alone.length < leastAlone ? undefined : median(alone);
}

/** A measured baseline that replaces a workload's. */
interface Revision extends Pick<Workload, 'baselineRate' | 'baselineFrom' | 'declaredBaselineRate'> {
  /** Whether it is from reports far above the former baseline, made alone or not. */
  isRaise: boolean;
}

/**
 * The revision of a workload's baseline that its reports call for. Undefined if they call for none, or if the baseline was
 * revised just now. A declared baseline is only ever raised.
 */
export function revisedBaseline(
  { baselineRate, baselineFrom, declaredBaselineRate }: Omit<Workload, 'rate' | 'reportedAt' | 'aloneRate'>,
  reports: WorkloadReports,
): Revision | undefined {
  const { recent, reportedAt, revisedAt } = reports;
  if (revisedAt !== undefined && Math.abs(reportedAt - revisedAt) < reviseEveryMs) return undefined;
  const lasting = recent.length < mostRecent ? 0 : (median(recent) ?? 0);
  const isTooLow = baselineRate !== undefined && lasting > raiseAbove * baselineRate;
  const isDeclared = baselineRate !== undefined && baselineFrom !== 'measured';
  const measured = isTooLow ? lasting : isDeclared ? undefined : aloneRateOf(reports);
  if (measured === undefined) return undefined;
  if (baselineRate !== undefined && Math.abs(measured / baselineRate - 1) < leastChange) return undefined;
  const declared = isDeclared ? baselineRate : declaredBaselineRate;
  return {
    ...{ baselineRate: measured, baselineFrom: 'measured', isRaise: isTooLow },
    ...(declared !== undefined && { declaredBaselineRate: declared }),
  };
}

/** When functions last ran on each device, from the rows of the agents. */
export class FunctionUse {
  /** By device: its node, the time of the first row, and the last time at which a function ran, epoch ms. */
  private readonly devices = new Map<string, { invoker: string; sinceMs: number; usedMs: number; isBusy: boolean }>();

  constructor(
    private readonly table: Pick<GpuTable, 'nodes' | 'onRow' | 'onGone'>,
    private readonly clock: Clock,
  ) {
    table.onRow((node) => this.observe(node));
    table.onGone((invoker) => this.forget(invoker));
    for (const node of table.nodes()) this.observe(node);
  }

  /**
   * Whether no function has run on a workload's device since `sinceMs`, epoch ms. False if the agent is silent, or was
   * not heard of then.
   */
  isUnusedSince({ invoker, device }: Pick<Workload, 'invoker' | 'device'>, sinceMs: number): boolean {
    const seen = this.devices.get(device);
    if (seen === undefined || seen.isBusy || seen.sinceMs > sinceMs || seen.usedMs > sinceMs) return false;
    return this.table.nodes().some((node) => node.invoker === invoker);
  }

  private observe({ invoker, devices, residents }: NodeStatus): void {
    const now = this.clock.now();
    for (const { uuid } of devices) {
      const here = residents.filter(({ device }) => device === uuid);
      const known = this.devices.get(uuid) ?? { invoker, sinceMs: now, usedMs: -Infinity, isBusy: false };
      const isBusy = here.some(({ activations }) => activations.length > 0);
      // A run may have begun and ended between two rows.
      const ended = here.map(({ idleSince = -Infinity }) => idleSince);
      const usedMs = Math.max(known.usedMs, ...ended, isBusy || known.isBusy ? now : -Infinity);
      this.devices.set(uuid, { ...known, invoker, usedMs, isBusy });
    }
  }

  private forget(invoker: string): void {
    for (const [uuid, seen] of this.devices) if (seen.invoker === invoker) this.devices.delete(uuid);
  }
}

/** The time since which no function may have run for a report at `at` to count as alone, epoch ms. */
export function sinceOf(before: WorkloadReports | undefined, { rate, at }: Pick<Report, 'rate' | 'at'>): number {
  const stepMs = Math.min(1000 / rate, longestStepMs);
  return Math.min(before?.reportedAt ?? at, at - stepMs);
}
