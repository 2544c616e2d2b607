// Curves of samples alone, and the table of shares that requests them.
import { keepNewest } from '@gpuwhisk/common/collections';
import { kindName, type GpuKind } from '@gpuwhisk/common/gpu';
import { jobId } from '@gpuwhisk/gpu/share/quota-row';
import type { QuotaJob, Quotas } from '@gpuwhisk/gpu/share/quotas';
import { ShareProfiles } from '@gpuwhisk/gpu/share/priors';
import type { PerformanceData } from './performance-data.js';

/** Times of a function's sample alone at each share class, on a kind of GPU. */
export interface SampleCurve extends GpuKind {
  job: Pick<QuotaJob, 'function' | 'version' | 'batch'>;
  /** Major version of the driver during the measurement. */
  driverMajor: number;
  /** Time at each share class, divided by the time at 100 %. */
  slowdowns: readonly number[];
}

/** Most curves; beyond this bound the oldest measurement is removed. */
const maxCurves = 1000;

/** Curves of functions' samples alone (FaaShare's offline phase, section VII-B), from which searches start. */
export class SampleCurves {
  /** Expected slowdowns of functions by share, from the curves. */
  readonly profiles = new ShareProfiles();
  private readonly curves = new Map<string, SampleCurve>();

  /** `onChange` is called with the name of a curve and the curve; undefined for a deleted one. */
  constructor(private readonly onChange: (name: string, curve: SampleCurve | undefined) => void) {}

  of(job: QuotaJob, { gpuType, mode }: GpuKind): SampleCurve | undefined {
    return this.curves.get(nameOf({ job, gpuType, mode }));
  }

  /** Adds a curve. Returns the reason if it is refused, else undefined. */
  add(curve: SampleCurve): string | undefined {
    const refused = this.take(curve);
    if (refused === undefined) this.onChange(nameOf(curve), curve);
    return refused;
  }

  /** Adds a stored curve. Throws RangeError. */
  restore(value: unknown): void {
    const curve = value as SampleCurve | null;
    const { job } = curve ?? {};
    const isSound =
      curve !== null &&
      [job?.function, job?.version, curve.gpuType, curve.mode].every((text) => typeof text === 'string') &&
      [job?.batch, curve.driverMajor].every(Number.isInteger) &&
      Array.isArray(curve.slowdowns);
    const refused = isSound ? this.take(curve) : 'fields are missing';
    if (refused !== undefined) throw new RangeError(`invalid curve of a sample: ${refused}`);
  }

  /** Notes a function's present version (undefined: deleted). Curves of its other versions are deleted. */
  sawVersion(name: string, version: string | undefined): void {
    for (const [key, { job }] of this.curves) {
      if (job.function === name && job.version !== version) this.drop(key);
    }
  }

  private take(curve: SampleCurve): string | undefined {
    const refused = this.profiles.add(curve.job, curve, curve.slowdowns);
    if (refused !== undefined) return refused;
    keepNewest(this.curves, nameOf(curve), curve, maxCurves, (oldest) => this.drop(oldest));
    return undefined;
  }

  private drop(name: string): void {
    this.curves.delete(name);
    this.onChange(name, undefined);
  }
}

function nameOf(curve: GpuKind & Pick<SampleCurve, 'job'>): string {
  return `${kindName(curve)} ${jobId(curve.job)}`;
}

type Known = Pick<PerformanceData, 'table' | 'curves'>;

/** Whether samples shall be run for a set: to find its shares, or the fill of a single function. */
export function wantsSamples({ table, curves }: Known, set: readonly QuotaJob[], gpu: GpuKind): boolean {
  // Shares have an effect under MPS only.
  if (gpu.mode !== 'mps') return false;
  const [only, ...others] = set;
  if (only === undefined || others.length > 0) return table.wantsSearch(set, gpu);
  return only.features === undefined && curves.of(only, gpu) === undefined;
}

/**
 * The table of shares for the request path. Queries for sets without a finished search, and for functions without a fill,
 * are noted as demands.
 */
export function liveQuotas(performanceData: Known & Pick<PerformanceData, 'demands' | 'metrics'>): Quotas {
  const { table, demands, metrics } = performanceData;
  return {
    shareFor(set, gpu, budgetsMs, fixed, leftMs) {
      const choice = table.shareFor(set, gpu, budgetsMs, fixed, leftMs);
      metrics.asked(choice.source);
      if (wantsSamples(performanceData, set, gpu)) demands.asked(set, gpu, budgetsMs);
      return choice;
    },
    slowdownsAt: (...asked) => table.slowdownsAt(...asked),
  };
}
