import type { Clock } from '@gpuwhisk/common/system/clock';
import type { ShareEnforcer } from './enforcers/share-enforcer.js';

/** No longer than a process takes anyway from its start until it is a client: what happens meanwhile no check sees. */
const sharedMs = 250;

/** Checks of the enforcer by containers that are to start: with MPS each takes programs to be run, so that one serves a burst. */
export class EnforcerChecks {
  /** By device or slice, when it was last asked (monotonic ms), and the answer. */
  private readonly last = new Map<string, { askedMs: number; answer: Promise<string | undefined> }>();

  constructor(
    private readonly enforcer: Pick<ShareEnforcer, 'check'>,
    private readonly clock: Pick<Clock, 'monotonicMs'>,
  ) {}

  /**
   * What is wrong with the enforcer of a device or slice. That nothing was may have been found for another, up to 250 ms
   * ago; a problem is found anew each time, and so is everything if `isMissed`: the enforcer has failed somebody since.
   */
  ask(device: string, slice: string | undefined, isMissed: boolean): Promise<string | undefined> {
    const place = slice ?? device;
    const askedMs = this.clock.monotonicMs();
    const last = this.last.get(place);
    if (last !== undefined && !isMissed && askedMs - last.askedMs < sharedMs) return last.answer;
    const answer = this.enforcer.check(device, slice).catch((failure: Error) => failure.message);
    this.last.set(place, { askedMs, answer });
    void answer.then((problem) => {
      if (problem !== undefined && this.last.get(place)?.answer === answer) this.last.delete(place);
    });
    return answer;
  }
}
