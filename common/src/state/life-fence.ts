import type { Clock } from '../system/clock.js';

/**
 * Keeps a process that its cluster may have retired from beginning anything. A process that hears neither Redis nor Kafka may
 * be taken for dead; it begins nothing until its name is confirmed. While it hears one of them, it is alive to the others.
 */
export class LifeFence {
  private heardMs: number;
  private heardAtMs: number;
  private isBroken = false;

  constructor(
    private readonly clock: Clock,
    /** A silence that is longer breaks the fence, ms. */
    private readonly silentMs: number,
  ) {
    this.heardMs = clock.monotonicMs();
    this.heardAtMs = clock.now();
  }

  /** An engine has answered. */
  heard(): void {
    this.look();
    this.heardMs = this.clock.monotonicMs();
    this.heardAtMs = this.clock.now();
  }

  /** The name of this process is its own, and it was not retired. */
  confirmed(): void {
    this.heard();
    this.isBroken = false;
  }

  /** Whether something may begin now. */
  get isOpen(): boolean {
    this.look();
    return !this.isBroken;
  }

  /** The time of day goes on, too, while a machine is suspended. */
  private look(): void {
    const { clock, silentMs } = this;
    if (clock.monotonicMs() - this.heardMs > silentMs || clock.now() - this.heardAtMs > silentMs) this.isBroken = true;
  }
}
