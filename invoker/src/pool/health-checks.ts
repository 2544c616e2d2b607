import type { Logger } from '@gpuwhisk/common/logging';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { problemOf } from '../containers/container-factory.js';
import type { Container } from '../containers/container-factory.js';
import type { WaitingPairs } from './waiting-pairs.js';

const everyMs = 10_000;
const atOnce = 4;
const limits = { timeoutMs: 2000, logLimitBytes: 0, maxResultBytes: 1024, truncationBytes: 1024 };

/**
 * Asks every container that waits and can unload, a few at a time, every 10 s whether it is in order; one that is not, or
 * does not say so within 2 s, is replaced. An action may take one meanwhile: its init follows the check.
 */
export class HealthChecks {
  private underWay = false;
  private closing = false;

  constructor(
    private readonly clock: Clock,
    private readonly logger: Logger,
    private readonly stocks: readonly WaitingPairs[],
  ) {
    this.schedule();
  }

  close(): void {
    this.closing = true;
  }

  private schedule(): void {
    this.clock.setBackgroundTimer(everyMs, () => {
      if (this.closing) return;
      if (!this.underWay) void this.round();
      this.schedule();
    });
  }

  private async round(): Promise<void> {
    this.underWay = true;
    const pairs = this.stocks.flatMap((stock) =>
      stock
        .list()
        .filter(({ canUnload }) => canUnload)
        .map((container) => ({ stock, container })),
    );
    const checkNext = async (): Promise<void> => {
      for (let pair = pairs.shift(); pair !== undefined; pair = pairs.shift()) {
        if (pair.stock.has(pair.container)) await this.check(pair.stock, pair.container);
      }
    };
    await Promise.all(Array.from({ length: atOnce }, checkNext));
    this.underWay = false;
  }

  private async check(stock: WaitingPairs, container: Container): Promise<void> {
    const problem = await container.check(limits).outcome.then(problemOf, String);
    if (problem === undefined || this.closing || !stock.has(container)) return;
    this.logger.warn(
      { container: container.id, kind: container.spec.kind, problem },
      'a container that waited for an action is out of order and is replaced',
    );
    stock.replace(container);
  }
}
