import type { Clock } from '@gpuwhisk/common/system/clock';
import { GpuDriverError } from './gpu-driver.js';

/** Calls that may wait for the one before them; it is one a second and what operators ask. */
const maxWaiting = 64;

/**
 * Runs calls of a driver one after another, since each holds a thread. A call that has no answer `timeoutMs` after it was
 * asked for is given up with GpuDriverError; its thread is not to be had back, so those behind it wait for it, and are given up
 * in their turn. With more than 64 waiting the next is refused.
 */
export function oneAtATime(clock: Clock, timeoutMs: number): <Result>(work: () => Promise<Result>) => Promise<Result> {
  let last: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  return (work) => {
    if (waiting > maxWaiting)
      return Promise.reject(new GpuDriverError('The driver does not answer; too many calls wait.'));
    waiting++;
    let givenUp = false;
    const answer = last.then(() => {
      if (givenUp) throw new GpuDriverError('The call was given up before it began.');
      return work();
    });
    const settle = (): void => {
      waiting--;
    };
    last = answer.then(settle, settle);
    return new Promise((resolve, reject) => {
      const timer = clock.setBackgroundTimer(timeoutMs, () => {
        givenUp = true;
        reject(new GpuDriverError(`The driver did not answer within ${timeoutMs} ms.`));
      });
      answer.then(resolve, reject).finally(() => timer.cancel());
    });
  };
}
