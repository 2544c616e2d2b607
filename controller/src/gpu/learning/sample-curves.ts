// Curves of samples alone, and the table of shares that asks for them.
import type { DeviceMode } from '@gpuwhisk/common/gpu';
import { jobId, placeKey } from '@gpuwhisk/gpu/share/quota-row';
import type { QuotaJob, Quotas } from '@gpuwhisk/gpu/share/quotas';
import { ShareProfiles } from '@gpuwhisk/gpu/share/priors';
import type { PerformanceData } from './performance-data.js';

/** How a function's sample runs alone at each share class on a kind of GPU. */
export interface SampleCurve {
  job: Pick<QuotaJob, 'function' | 'version' | 'batch'>;
  gpuType: string;
  mode: DeviceMode;
  /** Of the driver that it was measured with. */
  driverMajor: number;
  /** At the share classes, over the time at 100 %. */
  slowdowns: readonly number[];
}

/** Thrown for what is no stored curve. */
class SampleCurveError extends Error {
  override name = 'SampleCurveError';
}

/** Curves that are kept; then the one goes that was measured first. */
const maxCurves = 1000;

/** Curves of functions' samples alone (FaaShare's offline phase, section VII-B), from which searches start. */
export class SampleCurves {
  /** Expected slowdowns of functions by share, from the curves. */
  readonly profiles = new ShareProfiles();
  private readonly curves = new Map<string, SampleCurve>();

  /** `onChange` is told of a curve by its name; undefined: it is forgotten. */
  constructor(private readonly onChange: (name: string, curve: SampleCurve | undefined) => void) {}

  of(job: QuotaJob, gpuType: string, mode: DeviceMode): SampleCurve | undefined {
    return this.curves.get(nameOf({ job, gpuType, mode }));
  }

  /** Keeps a curve. Gives why it is refused, or undefined. */
  add(curve: SampleCurve): string | undefined {
    const refused = this.take(curve);
    if (refused === undefined) this.onChange(nameOf(curve), curve);
    return refused;
  }

  /** Takes a stored curve. Throws SampleCurveError. */
  restore(value: unknown): void {
    const curve = value as SampleCurve | null;
    const { job } = curve ?? {};
    const isSound =
      curve !== null &&
      [job?.function, job?.version, curve.gpuType, curve.mode].every((text) => typeof text === 'string') &&
      [job?.batch, curve.driverMajor].every(Number.isInteger) &&
      Array.isArray(curve.slowdowns);
    const refused = isSound ? this.take(curve) : 'fields are missing';
    if (refused !== undefined) throw new SampleCurveError(`this is no curve of a sample: ${refused}`);
  }

  /** A function has a new version, or is gone (undefined): what was measured of others is forgotten. */
  sawVersion(name: string, version: string | undefined): void {
    for (const [key, { job }] of this.curves) {
      if (job.function === name && job.version !== version) this.drop(key);
    }
  }

  private take(curve: SampleCurve): string | undefined {
    const { job, gpuType, mode, slowdowns } = curve;
    const refused = this.profiles.add(job, gpuType, mode, slowdowns);
    if (refused !== undefined) return refused;
    const name = nameOf(curve);
    this.curves.delete(name);
    this.curves.set(name, curve);
    const [oldest] = this.curves.keys();
    if (this.curves.size > maxCurves && oldest !== undefined) this.drop(oldest);
    return undefined;
  }

  private drop(name: string): void {
    this.curves.delete(name);
    this.onChange(name, undefined);
  }
}

function nameOf({ job, gpuType, mode }: Pick<SampleCurve, 'job' | 'gpuType' | 'mode'>): string {
  return `${placeKey(gpuType, mode)} ${jobId(job)}`;
}

type Known = Pick<PerformanceData, 'table' | 'curves'>;

/** Whether samples are to be run for a set: to find its shares, or the fill of a single function. */
export function wantsSamples(
  { table, curves }: Known,
  set: readonly QuotaJob[],
  gpuType: string,
  mode: DeviceMode,
): boolean {
  // Shares mean something under MPS only.
  if (mode !== 'mps') return false;
  const [only, ...others] = set;
  if (only === undefined || others.length > 0) return table.wantsSearch(set, gpuType, mode);
  return only.features === undefined && curves.of(only, gpuType, mode) === undefined;
}

/**
 * The table of shares as the request path asks it. It notes sets without a finished search, and single functions without
 * a fill: a function without a fill is never placed beside others.
 */
export function liveQuotas(performanceData: Known & Pick<PerformanceData, 'demands' | 'metrics'>): Quotas {
  const { table, demands, metrics } = performanceData;
  return {
    shareFor(set, gpuType, mode, budgetsMs, fixed) {
      const choice = table.shareFor(set, gpuType, mode, budgetsMs, fixed);
      metrics.asked(choice.source);
      if (wantsSamples(performanceData, set, gpuType, mode)) demands.asked(set, gpuType, mode, budgetsMs);
      return choice;
    },
  };
}
