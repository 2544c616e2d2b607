import type { RunningTask } from '../view/view.js';
import type { SubQueue } from './sub-queue.js';
import { membersOf, slowdownsOf, unmeasuredMs } from './sub-queue.js';

/** What was known of a running task when a policy decided last. */
export interface Seen {
  /** Time alone that was still ahead, ms. */
  leftMs: number;
  at: number;
  /** Predicted beside those who ran with it from then on. */
  slowdown: number;
}

/**
 * How far running tasks have got, from what was predicted of each set that they were in: who has left makes nobody who
 * stays further ahead. Knows what ran at the last decision only.
 */
export class Progress {
  private seen = new Map<string, Seen>();

  /** Time alone that is still ahead of a task at `at`, ms; undefined for one that was not seen before. */
  leftMs({ task, startedAt }: RunningTask, at: number): number | undefined {
    const seen = this.seen.get(task.id);
    if (seen === undefined) return undefined;
    const computesAt = startedAt + (task.startMs ?? 0);
    const ranMs = Math.max(0, at - Math.max(seen.at, computesAt));
    // One that takes longer than predicted is taken to need some more yet.
    return Math.max((task.soloMs ?? unmeasuredMs) * 0.05, seen.leftMs - ranMs / seen.slowdown);
  }

  /** Keeps what runs after a decision, with its starts. */
  note(queues: readonly SubQueue[], at: number): void {
    const seen = new Map<string, Seen>();
    for (const queue of queues) {
      const members = membersOf(queue);
      const slowdowns = slowdownsOf(queue, members);
      members.forEach(({ task, leftMs }, index) => seen.set(task.id, { leftMs, at, slowdown: slowdowns[index]! }));
    }
    this.seen = seen;
  }

  /** The state by task, for `restore`. */
  saved(): [string, Seen][] {
    return [...this.seen];
  }

  /** Takes the state of another one. */
  restore(seen: readonly (readonly [string, Seen])[]): void {
    this.seen = new Map(seen);
  }
}
