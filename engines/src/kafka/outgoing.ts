import type { Receipt } from '@gpuwhisk/common/bus/message-bus';

/** A message on its way to a broker. */
export class Outgoing implements Receipt {
  private outcome: 'stored' | Error | undefined;
  private promise: Promise<void> | undefined;
  private resolve: (() => void) | undefined;
  private reject: ((error: Error) => void) | undefined;

  constructor(
    readonly value: string,
    readonly bytes: number,
    /** When it is given up, on the clock that does not go back. */
    readonly deadlineMs: number,
  ) {}

  synced(): Promise<void> {
    if (this.promise) return this.promise;
    if (this.outcome === 'stored') this.promise = Promise.resolve();
    else if (this.outcome) this.promise = Promise.reject(this.outcome);
    else {
      this.promise = new Promise((resolve, reject) => {
        this.resolve = resolve;
        this.reject = reject;
      });
    }
    return this.promise;
  }

  /** It was stored, or will not be; the first of that counts. */
  settle(outcome: 'stored' | Error): void {
    if (this.outcome) return;
    this.outcome = outcome;
    if (outcome === 'stored') this.resolve?.();
    else this.reject?.(outcome);
  }
}
