// The pace of requests to a broker: under load, and after failures.
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Random } from '@gpuwhisk/common/system/random';
import { randomFraction } from '@gpuwhisk/common/system/random';

/** Requests that carry little begin so far apart under load, ms. */
const gapMs = 5;
/** A request that carries several messages tells of load; it lasts for so many requests. */
const remembered = 16;

/**
 * Spaces requests under load: what gathers meanwhile goes in one, which costs the broker and both its clients little more than
 * one message does. Where each message comes after the last is through, nothing is waited for.
 */
export class Pace {
  private beganMs = -Infinity;
  private loaded = 0;

  constructor(private readonly clock: Clock) {}

  /** Resolves when the next request may begin. */
  async turn(): Promise<void> {
    const waitMs = this.beganMs + gapMs - this.clock.monotonicMs();
    if (this.loaded > 0 && waitMs > 0) await sleep(this.clock, waitMs);
    this.beganMs = this.clock.monotonicMs();
  }

  /** The request carried so many messages. */
  carried(messages: number): void {
    this.loaded = messages > 1 ? remembered : Math.max(0, this.loaded - 1);
  }
}

const firstMs = 50;
const longestMs = 2000;

/** How long to wait after the failure number `attempt`, from 0 on, ms: doubling up to two seconds, less up to a half by chance. */
export function backoffMs(attempt: number, random: Random): number {
  return Math.min(longestMs, firstMs * 2 ** Math.min(attempt, 20)) * (1 - randomFraction(random) / 2);
}
