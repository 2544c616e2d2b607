// Fairness between namespaces: the order of their tasks by deficit round robin, and a bound on what one namespace
// holds.
import type { RunningTask, Task } from '../../view/view.js';

/** Credits of namespaces, share-milliseconds, and the namespace that was served last. */
export interface SavedTurns {
  credits: [string, number][];
  last: string;
}

/** Share-milliseconds that a namespace has in its turn, over what it still had. */
const quantum = 100;
/** What one whose tasks found no room may save up, share-milliseconds. */
const maxCredit = 10_000;

/** Tasks of one namespace that wait, the first one first. */
export interface NamespaceQueue<One> {
  namespace: string;
  waiting: readonly One[];
}

/**
 * Deficit round robin between namespaces (Shreedhar and Varghese, 1996), in the variant that serves a namespace while it
 * has credit and has it owe what its last task took beyond. A namespace with nothing waiting has neither credit nor debt.
 */
export class NamespaceTurns {
  private readonly credits = new Map<string, number>();
  /** Served last: the next one in the alphabet is first. */
  private last = '';

  /** All that wait in the order of their turn; `costOf` is in share-milliseconds, above 0. Changes nothing. */
  order<One>(queues: readonly NamespaceQueue<One>[], costOf: (one: One) => number): One[] {
    const [only, ...others] = queues;
    if (only !== undefined && others.length === 0) return [...only.waiting];
    const open = this.ring(queues).map(({ namespace, waiting }) => ({
      waiting,
      next: 0,
      credit: this.credit(namespace),
    }));
    const ordered: One[] = [];
    let left = open;
    while (left.length > 0) {
      refill(left);
      for (const queue of left) {
        while (queue.credit > 0 && queue.next < queue.waiting.length) {
          // eslint-disable-next-line @typescript-eslint/no-non-null-assertion -- the loop ends at the last one
          const one = queue.waiting[queue.next++]!;
          ordered.push(one);
          queue.credit -= costOf(one);
        }
      }
      left = left.filter(({ next, waiting }) => next < waiting.length);
    }
    return ordered;
  }

  /** A task of `namespace` was started while those of `waiting`, itself included, had tasks that waited. */
  started(namespace: string, cost: number, waiting: readonly string[]): void {
    const accounts = waiting.map((name) => ({ name, credit: this.credit(name) }));
    refill(accounts);
    for (const { name, credit } of accounts) this.credits.set(name, Math.min(credit, maxCredit));
    this.credits.set(namespace, this.credit(namespace) - cost);
    this.last = namespace;
  }

  /** A run took `more` share-milliseconds than was charged for it, or less. */
  correct(namespace: string, more: number): void {
    const credit = this.credits.get(namespace);
    if (credit !== undefined) this.credits.set(namespace, Math.min(credit - more, maxCredit));
  }

  /** Forgets those with nothing waiting. */
  keepOnly(waiting: ReadonlySet<string>): void {
    for (const namespace of this.credits.keys()) if (!waiting.has(namespace)) this.credits.delete(namespace);
  }

  /** The state, for `restore`. */
  saved(): SavedTurns {
    return { credits: [...this.credits], last: this.last };
  }

  /** Takes the state of another one. */
  restore({ credits, last }: SavedTurns): void {
    this.credits.clear();
    for (const [namespace, credit] of credits) this.credits.set(namespace, credit);
    this.last = last;
  }

  private credit(namespace: string): number {
    return this.credits.get(namespace) ?? 0;
  }

  private ring<One>(queues: readonly NamespaceQueue<One>[]): NamespaceQueue<One>[] {
    const sorted = [...queues].sort((one, other) => (one.namespace < other.namespace ? -1 : 1));
    const first = sorted.findIndex(({ namespace }) => namespace > this.last);
    return first <= 0 ? sorted : [...sorted.slice(first), ...sorted.slice(0, first)];
  }
}

/** Gives every account the same credit, until one is above 0: as many rounds as that takes, in one step. */
function refill(accounts: { credit: number }[]): void {
  const most = accounts.reduce((found, { credit }) => Math.max(found, credit), -Infinity);
  if (most > 0) return;
  for (const account of accounts) account.credit += quantum - most;
}

/** What each namespace holds of the GPUs, in shares; a task on two whole GPUs holds 2. */
export class Holdings {
  private readonly held = new Map<string, number>();
  private readonly fair: number;

  /** `waiting`: the namespaces of those that wait. */
  constructor(places: readonly { running: readonly RunningTask[] }[], waiting: ReadonlySet<string>) {
    for (const { running } of places) for (const { task, share } of running) this.add(task, share);
    const active = new Set([...this.held.keys(), ...waiting]);
    this.fair = active.size > 1 ? places.length / active.size : Infinity;
  }

  /** A task has got a share of one GPU. */
  add({ namespace }: Task, share: number): void {
    this.held.set(namespace, (this.held.get(namespace) ?? 0) + share);
  }

  /** Whether a namespace would hold more than its part of all GPUs, while others have work, too. */
  isOver({ namespace }: Task, share: number): boolean {
    return (this.held.get(namespace) ?? 0) + share > this.fair;
  }

  /** What decides whether a namespace holds too much: what it holds, and its part of all GPUs. */
  numbersOf({ namespace }: Task): { held: number; fair: number } {
    return { held: this.held.get(namespace) ?? 0, fair: this.fair };
  }

  /** Whether a namespace that holds something would hold more than twice its part, while others have work, too. */
  isFarOver({ namespace }: Task, share: number): boolean {
    const held = this.held.get(namespace) ?? 0;
    return held > 0 && held + share > 2 * this.fair;
  }
}
