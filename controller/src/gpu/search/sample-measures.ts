import { shareClasses } from '@gpuwhisk/common/gpu';
import type { DeviceMode, ShareClass } from '@gpuwhisk/common/gpu';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Allotment } from '@gpuwhisk/gpu/share/candidates';
import { jobId, placeKey } from '@gpuwhisk/gpu/share/quota-key';
import type { QuotaJob } from '@gpuwhisk/gpu/share/quotas';
import { BoundedCache } from '../../entities/bounded-cache.js';
import type { Learned } from '../learning/learned.js';
import type { SampleRunner } from './sample-runner.js';
import type { Sample } from './sample-source.js';

/** What samples are measured with. */
export interface SampleMeasuresParts {
  learned: Pick<Learned, 'runs' | 'curves' | 'driverOf' | 'metrics'>;
  runner: Pick<SampleRunner, 'alone' | 'together'>;
  clock: Clock;
  /** A sample's longest run, ms. */
  maxSampleMs: number;
}

/** A GPU to measure on, and until when. */
export interface MeasuredOn {
  gpu: string;
  gpuType: string;
  mode: DeviceMode;
  signal: AbortSignal;
}

/** Times alone that are remembered, and for how long: what else changes with time is measured anew. */
const aloneBounds = { maxAgeMs: 3_600_000, maxEntries: 5000 };

/** Measures samples alone and together, and has what is found learned. */
export class SampleMeasures {
  private readonly known: BoundedCache<number>;

  constructor(private readonly parts: SampleMeasuresParts) {
    this.known = new BoundedCache(parts.clock, aloneBounds);
  }

  /** Measures a sample alone at each share class, unless that was done with the driver that the GPU has. */
  async profile(sample: Sample, on: MeasuredOn): Promise<void> {
    const { learned, maxSampleMs } = this.parts;
    const { curves } = learned;
    const { gpu, gpuType, mode } = on;
    const driverMajor = learned.driverOf(gpu);
    const { function: name, version, batch } = sample.job;
    if (curves.of(sample.job, gpuType, mode)?.driverMajor === driverMajor) return;
    const soloMs = await this.soloMs(sample, on);
    const slowdowns: number[] = [];
    for (const shareClass of shareClasses) {
      const ms = await this.aloneMs(sample, shareClass, on);
      slowdowns.push(Math.min(ms, maxSampleMs) / soloMs);
    }
    const refused = curves.add({ job: { function: name, version, batch }, gpuType, mode, driverMajor, slowdowns });
    if (refused !== undefined) throw new Error(`the curve of ${name} was refused: ${refused}`);
  }

  /** Runs a set's samples with these shares, percent, and gives their slowdowns, which are samples for the predictor, too. */
  async together(
    set: readonly QuotaJob[],
    samples: readonly Sample[],
    shares: Allotment,
    on: MeasuredOn,
  ): Promise<number[]> {
    const { runner, learned } = this.parts;
    const { gpu, gpuType, mode, signal } = on;
    const soloMs: number[] = [];
    for (const sample of samples) soloMs.push(await this.soloMs(sample, on));
    const members = samples.map((sample, at) => ({ sample, shareClass: shares[at] as ShareClass }));
    const slowdowns = await runner.together(members, soloMs, gpu, signal);
    const terms = set.map(({ features }, at) => features && { features, share: shares[at]! / 100 });
    for (const [at, one] of terms.entries()) {
      const others = terms.filter((_, other) => other !== at).filter((other) => other !== undefined);
      if (one === undefined || others.length < set.length - 1) continue;
      const refused = learned.runs.add({ gpuType, mode }, { one, others, slowdown: slowdowns[at]! });
      learned.metrics.sampled(refused === undefined ? 'taken' : 'refused');
    }
    return slowdowns;
  }

  private async soloMs(sample: Sample, on: MeasuredOn): Promise<number> {
    const ms = await this.aloneMs(sample, 100, on);
    if (ms < Infinity) return ms;
    throw new Error(`the sample of ${sample.job.function} takes more than ${this.parts.maxSampleMs} ms`);
  }

  private async aloneMs(
    sample: Sample,
    shareClass: ShareClass,
    { gpu, gpuType, mode, signal }: MeasuredOn,
  ): Promise<number> {
    const name = `${placeKey(gpuType, mode)} ${jobId(sample.job)} ${shareClass}`;
    const known = this.known.get(name);
    if (known !== undefined) return known;
    const ms = await this.parts.runner.alone({ sample, shareClass }, gpu, signal);
    this.known.set(name, ms);
    return ms;
  }
}
