// Stores of containers that wait for an action, and the services of the pool that they share.
import type { Logger } from '@gpuwhisk/common/logging';
import type { Container, ContainerSpec } from '../containers/container-factory.js';
import type { MemoryBudget } from './memory-budget.js';

/** Services of the pool that every store of containers uses. */
export interface StoreServices {
  readonly memory: MemoryBudget;
  readonly removals: ContainerRemovals;
  readonly watch: ExitWatch;
  /** Whether a container can have the memory limit of `wanted`. */
  fits(container: Container, wanted: ContainerSpec): boolean;
  /** Memory of the snapshots of functions, MiB. */
  readonly snapshotsMiB: number;
  /** Called when a container has become ready for an action. */
  added(): void;
}

/** A set of containers that wait for an action. */
export interface ContainerStore {
  /** The containers that can be taken now. */
  list(): Container[];
  has(container: Container): boolean;
  /** Destroys a faulty container, and starts another one if the store keeps a fixed number. */
  replace(container: Container): void;
}

/** Notifies the present owner of a container that the container has ended by itself. A container has one owner at a time. */
export class ExitWatch {
  private readonly callbacks = new Map<Container, () => void>();

  /** Sets the callback for the container's end, in place of an earlier one. */
  set(container: Container, lost: () => void): void {
    if (!this.callbacks.has(container)) void container.exited.then(() => this.ended(container));
    this.callbacks.set(container, lost);
  }

  private ended(container: Container): void {
    const lost = this.callbacks.get(container);
    this.callbacks.delete(container);
    lost?.();
  }
}

/** Destroys containers in the background. Their memory is free once they have ended. */
export class ContainerRemovals {
  private readonly pending = new Set<Promise<void>>();

  constructor(
    private readonly memory: MemoryBudget,
    private readonly logger: Logger,
  ) {}

  /** Destroys a container whose memory is claimed; calls `removed` after its end. */
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

  /** Resolves when all containers removed so far have ended. */
  async settled(): Promise<void> {
    await Promise.all(this.pending);
  }
}
