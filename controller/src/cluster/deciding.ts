import type { Logger } from '@gpuwhisk/common/logging';
import type { LeaseKeeper } from './lease-keeper.js';

/** What only the controller that decides about GPUs does. */
export interface DecidersWork {
  /** It decides from now on. A rejection is logged. */
  begin(): Promise<void>;
  /** Another one does, or none. A rejection is logged. */
  end(): Promise<void>;
}

/** Has `work` begun and ended, one after the other, as this controller gets and loses the lease. */
export function whileDeciding(
  lease: Pick<LeaseKeeper, 'epoch' | 'onChange'>,
  logger: Logger,
  work: DecidersWork,
): void {
  let isDeciding = false;
  let last: Promise<void> = Promise.resolve();
  const follow = (): void => {
    const decides = lease.epoch !== undefined;
    if (decides === isDeciding) return;
    isDeciding = decides;
    last = last
      .then(() => (decides ? work.begin() : work.end()))
      .catch((error: unknown) => logger.error({ error: String(error) }, 'what the deciding controller does failed'));
  };
  lease.onChange(follow);
  follow();
}
