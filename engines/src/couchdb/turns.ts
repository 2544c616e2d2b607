import { CouchError } from './couch-error.js';

/** Lets so many go on at once; others wait for their turn, up to a number. */
export class Turns {
  private taken = 0;
  private readonly waiting = new Set<() => void>();

  constructor(
    private readonly maxAtOnce: number,
    private readonly maxWaiting: number,
  ) {}

  /** Resolves, first come first served, with what ends the turn. Rejects if too many wait, or once `signal` is aborted. */
  async take(signal: AbortSignal): Promise<() => void> {
    if (this.taken >= this.maxAtOnce) {
      if (this.waiting.size >= this.maxWaiting) throw new CouchError(`${this.maxWaiting} requests wait already`, 0);
      await new Promise<void>((resolve, reject) => {
        const begin = (): void => {
          signal.removeEventListener('abort', leave);
          resolve();
        };
        const leave = (): void => {
          this.waiting.delete(begin);
          reject(new CouchError('no turn in time', 0));
        };
        this.waiting.add(begin);
        signal.addEventListener('abort', leave, { once: true });
      });
    } else this.taken++;
    return () => this.end();
  }

  /** Hands the turn on. */
  private end(): void {
    const [next] = this.waiting;
    if (next === undefined) {
      this.taken--;
      return;
    }
    this.waiting.delete(next);
    next();
  }
}
