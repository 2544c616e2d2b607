import { ReadsFullError } from './artifact-store.js';

/** Lists, counts and records that one reader asks for at the same time, at most. */
export const mostReads = 64;

interface Reader {
  /** Reads that have begun and are not done. */
  active: number;
  /** Steps that wait, the oldest first. */
  waiting: (() => void)[];
  /** Cost of this reader's steps. Of several readers that wait, the one with the least goes first. */
  spent: number;
}

/**
 * Steps of reads, one at a time, shared fairly between readers: the next step is one of the reader whose steps have cost the
 * least. A reader that has not waited before begins at the cost of the step under way, so that it is given no credit.
 */
export class ReadQueue {
  private readonly readers = new Map<string, Reader>();
  private isBusy = false;
  private spent = 0;

  /** Begins a read, which ends when the returned function is called. Throws ReadsFullError. */
  begin(name: string): () => void {
    const reader = this.readers.get(name) ?? { active: 0, waiting: [], spent: this.spent };
    if (reader.active >= mostReads) throw new ReadsFullError(reader.active + 1, mostReads);
    reader.active += 1;
    this.readers.set(name, reader);
    return () => {
      reader.active -= 1;
      if (reader.active === 0) this.readers.delete(name);
    };
  }

  /** Does one step of a read that has begun, once it is the reader's turn. `costOf` says what the step has cost, at least 1. */
  async step<Result>(name: string, work: () => Promise<Result>, costOf: (result: Result) => number): Promise<Result> {
    const reader = this.readers.get(name) as Reader;
    if (this.isBusy) {
      if (reader.waiting.length === 0) reader.spent = Math.max(reader.spent, this.spent);
      await new Promise<void>((resolve) => reader.waiting.push(resolve));
    }
    this.isBusy = true;
    this.spent = Math.max(this.spent, reader.spent);
    try {
      const result = await work();
      reader.spent += costOf(result);
      return result;
    } finally {
      this.next();
    }
  }

  private next(): void {
    let least: Reader | undefined;
    for (const reader of this.readers.values()) {
      if (reader.waiting.length > 0 && (least === undefined || reader.spent < least.spent)) least = reader;
    }
    // Busy stays set for the one that is woken, so that none comes between.
    if (least === undefined) this.isBusy = false;
    else least.waiting.shift()?.();
  }
}
