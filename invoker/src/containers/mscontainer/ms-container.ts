import type { Container } from '../container-factory.js';
import type { SharedNamespace } from '../process/factory-options.js';
import type { Holder } from '../process/holder.js';

/** Pairs of one MSContainer, at most. */
export const maxPairs = 16;

/** Several pairs in one PID namespace, which a holder process keeps. */
export class MsContainer {
  readonly shared: SharedNamespace;
  private readonly pairs = new Map<string, Container>();
  /** Places that are taken for pairs yet to be made. */
  private reserved = 0;
  private isAlive = true;

  constructor(
    id: string,
    private readonly holder: Holder,
  ) {
    this.shared = { id, pidNamespace: holder.pidNamespace };
    void holder.exited.then(() => (this.isAlive = false));
  }

  /** Whether its holder lives: without it there are no processes in the namespace, and none can be started. */
  get alive(): boolean {
    return this.isAlive;
  }

  /** Resolves when the holder has ended; the pairs end with it. */
  get exited(): Promise<void> {
    return this.holder.exited;
  }

  /** Takes a place for a pair, which `add` fills; false if there is none. */
  reserve(): boolean {
    if (!this.isAlive || this.pairs.size + this.reserved >= maxPairs) return false;
    this.reserved++;
    return true;
  }

  get isEmpty(): boolean {
    return this.pairs.size + this.reserved === 0;
  }

  /** Makes a pair in a reserved place by `make`, and calls `left` once that has ended or could not be made. */
  async add(make: (shared: SharedNamespace) => Promise<Container>, left: () => void): Promise<Container> {
    let pair: Container;
    try {
      pair = await make(this.shared);
    } catch (error) {
      this.reserved--;
      left();
      throw error;
    }
    this.reserved--;
    this.pairs.set(pair.id, pair);
    void pair.exited.then(() => {
      this.pairs.delete(pair.id);
      left();
    });
    return pair;
  }

  /** Ends the holder, and what is left in the namespace with it. */
  end(): Promise<void> {
    this.isAlive = false;
    return this.holder.end();
  }
}
