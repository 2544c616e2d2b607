import type { Logger } from '@gpuwhisk/common/logging';
import type { Container } from '../containers/container-factory.js';
import type { MemoryBudget } from './memory-budget.js';

/** Containers on their way out: destroyed in the background, their memory free only when they are gone. */
export class Removals {
  private readonly pending = new Set<Promise<void>>();

  constructor(
    private readonly memory: MemoryBudget,
    private readonly logger: Logger,
  ) {}

  /** Destroys a container whose memory is claimed; `removed` is called when it is gone. */
  remove(container: Container, removed?: () => void): void {
    this.memory.leaving(container.spec);
    const removal = container
      .destroy()
      .catch((error: unknown) =>
        this.logger.error({ container: container.id, error: String(error) }, 'a container could not be destroyed'),
      )
      .then(() => {
        this.pending.delete(removal);
        this.memory.left(container.spec);
        removed?.();
      });
    this.pending.add(removal);
  }

  /** Resolves when all that were removed by now are gone. */
  async settled(): Promise<void> {
    await Promise.all(this.pending);
  }
}
