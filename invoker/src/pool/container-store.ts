import type { Logger } from '@gpuwhisk/common/logging';
import type { Container } from '../containers/container-factory.js';
import type { MemoryBudget } from './memory-budget.js';

/** What everybody who keeps containers needs. */
export interface StoreServices {
  readonly memory: MemoryBudget;
  readonly removals: ContainerRemovals;
  readonly watch: ExitWatch;
}

/** Containers that wait for an action yet to come. */
export interface ContainerStore {
  /** The containers at hand. */
  list(): Container[];
  has(container: Container): boolean;
  /** Destroys one that is out of order, and replaces it where it would be missed. */
  replace(container: Container): void;
}

/** Tells whoever has a container that it has ended by itself. A container passes through many hands, and has one watch. */
export class ExitWatch {
  private readonly losers = new Map<Container, () => void>();

  /** From now on `lost` is called, and nobody before it, should the container end. */
  set(container: Container, lost: () => void): void {
    if (!this.losers.has(container)) void container.exited.then(() => this.ended(container));
    this.losers.set(container, lost);
  }

  private ended(container: Container): void {
    const lost = this.losers.get(container);
    this.losers.delete(container);
    lost?.();
  }
}

/** Containers on their way out: destroyed in the background, their memory free only when they are gone. */
export class ContainerRemovals {
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
