import { every } from '@gpuwhisk/common/system/clock';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';
import type { GpuPolicy } from './gpu-policy.js';

/** Interval of the policy's scaling, ms. */
const tickMs = 1000;
/**
 * From the report of a suffering workload to the policy's answer, ms: reports that come together have one answer, and a view
 * shows workloads as they were up to 100 ms ago.
 */
const answerReportMs = 120;

/** Dependencies of PolicyTicks. */
interface PolicyTicksParts {
  clock: Clock;
  policy: Pick<GpuPolicy, 'scales' | 'protects'>;
  /** Carries out what the policy decides. */
  act(kind: 'tick' | 'report'): void;
}

/** Asks a policy that scales each second, and one that protects workloads soon after reports that they suffer. */
export class PolicyTicks {
  private ticks: Timer | undefined;
  private answerSet = false;

  constructor(private readonly parts: PolicyTicksParts) {}

  /** Begins or ends the ticks, as the policy in force scales or does not. */
  follow(): void {
    const { clock, policy, act } = this.parts;
    this.close();
    if (policy.scales) this.ticks = every(clock, tickMs, () => act('tick'));
  }

  /** Has a workload's report answered. */
  answerSoon(): void {
    const { clock, policy, act } = this.parts;
    if (this.answerSet || !policy.protects) return;
    this.answerSet = true;
    clock.setBackgroundTimer(answerReportMs, () => {
      this.answerSet = false;
      act('report');
    });
  }

  /** Ends the ticks. */
  close(): void {
    this.ticks?.cancel();
    this.ticks = undefined;
  }
}
