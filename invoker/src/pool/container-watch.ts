import type { Container } from '../containers/container-factory.js';

/** Tells whoever has a container that it has ended by itself. A container passes through many hands, and has one watch. */
export class ContainerWatch {
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
