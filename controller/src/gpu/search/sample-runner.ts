import { ActivationStatus } from '@gpuwhisk/common/entities/activation';
import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import { parameterValue } from '@gpuwhisk/common/entities/parameters';
import type { ShareClass } from '@gpuwhisk/common/gpu';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { isTelling, steadyRuns, typicalMs } from '@gpuwhisk/gpu/share/set-observations';
import type { RunInterval } from '@gpuwhisk/gpu/share/set-observations';
import type { InvokeService } from '../../invoke/invoke-service.js';
import { unlessAborted } from './abortable.js';
import type { Sample } from './sample-source.js';

/** A sample, and the share that it is to have. */
export interface SharedSample {
  sample: Sample;
  shareClass: ShareClass;
}

/** What samples are run with. */
export interface SampleRunnerParts {
  invoker: InvokeService;
  clock: Clock;
  /** A sample's longest run, ms. */
  maxSampleMs: number;
}

interface SampleEnd extends RunInterval {
  isWarm: boolean;
  /** It was ended as it took too long. */
  isOverlong: boolean;
}

/** A cold start and a run take no longer, ms. */
const invokeMs = 120_000;
/** For how long, ms, and how often samples are run to measure them once. */
const measureMs = 60_000;
const maxRuns = 200;

/** Runs samples on a GPU as requests would run, and tells how long they take. */
export class SampleRunner {
  constructor(private readonly parts: SampleRunnerParts) {}

  /**
   * A sample's time on an idle GPU with this share, ms; Infinity where it takes longer than it may. Rejects where it fails,
   * and when aborted.
   */
  async alone({ sample, shareClass }: SharedSample, gpu: string, signal: AbortSignal): Promise<number> {
    const runs: SampleEnd[] = [];
    for (let count = 0; count < maxRuns && !isTelling(runs); count += 1) {
      const run = await this.run({ sample, shareClass }, gpu, signal);
      if (run.isOverlong) return Infinity;
      if (run.isWarm) runs.push(run);
    }
    if (!isTelling(runs)) throw new Error(`no instance of ${sample.job.function} stays warm`);
    const ms = typicalMs(runs);
    if (ms <= 0) throw new Error(`the sample of ${sample.job.function} takes less than a millisecond`);
    return ms;
  }

  /**
   * By member, how much slower its sample is than alone (`soloMs`) while the others run over and over beside it. Who takes too
   * long is at least as slow as that. Rejects as `alone` does, and where runs are too short to be beside each other.
   */
  async together(
    members: readonly SharedSample[],
    soloMs: readonly number[],
    gpu: string,
    signal: AbortSignal,
  ): Promise<number[]> {
    // Each has an instance with its share before anybody is measured.
    const first = await Promise.all(members.map((member) => this.run(member, gpu, signal)));
    const runs: SampleEnd[][] = members.map(() => []);
    let isOver = first.some(({ isOverlong }) => isOverlong);
    const untilMs = this.parts.clock.monotonicMs() + measureMs;
    const isMeasured = (): boolean => steadyRuns(runs).every(isTelling);
    await Promise.all(
      members.map(async (member, at) => {
        try {
          while (!isOver) {
            const run = await this.run(member, gpu, signal);
            if (run.isWarm || run.isOverlong) runs[at]!.push(run);
            isOver ||= run.isOverlong || isMeasured();
            isOver ||= runs[at]!.length >= maxRuns || this.parts.clock.monotonicMs() >= untilMs;
          }
        } finally {
          isOver = true;
        }
      }),
    );
    const { maxSampleMs } = this.parts;
    const isOverlong = members.map((_, at) => first[at]!.isOverlong || runs[at]!.some((run) => run.isOverlong));
    if (isOverlong.includes(true)) {
      return members.map((_, at) => {
        const ms = isOverlong[at] ? maxSampleMs : typicalMs([first[at]!, ...runs[at]!]);
        return Math.max(1, ms / soloMs[at]!);
      });
    }
    if (!isMeasured()) throw new Error('the samples are too short, or too unlike in length, to be measured together');
    return steadyRuns(runs).map((own, at) => typicalMs(own) / soloMs[at]!);
  }

  private async run({ sample, shareClass }: SharedSample, gpu: string, signal: AbortSignal): Promise<SampleEnd> {
    const { identity, action, payload, job } = sample;
    const { invoker, maxSampleMs: maxMs } = this.parts;
    const transactionId = 'sid_quotaSearch';
    const outcome = await unlessAborted(signal, () =>
      invoker.invoke({
        ...{ identity, action, payload, blocking: true, waitMs: invokeMs, transactionId },
        sample: { gpu, shareClass, maxMs },
      }),
    );
    if (outcome.type !== 'completed')
      throw new Error(`the sample of ${job.function} did not end within ${invokeMs} ms`);
    return endOf(outcome.activation, job.function);
  }
}

function endOf({ annotations, response, start, end = start, ...activation }: WhiskActivation, name: string): SampleEnd {
  const isOverlong = parameterValue(annotations, 'timeout') === true;
  if (response.statusCode !== ActivationStatus.success && !isOverlong) {
    throw new Error(`the sample of ${name} failed in activation ${activation.activationId}`);
  }
  const initMs = parameterValue(annotations, 'initTime');
  const loadMs = typeof initMs === 'number' ? initMs : 0;
  return { startMs: start + loadMs, endMs: end, isWarm: initMs === undefined, isOverlong };
}
