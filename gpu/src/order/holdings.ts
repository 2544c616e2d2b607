import type { GpuState, Task } from '../view/view.js';

/** What each namespace holds of the GPUs, in shares; a task on two whole GPUs holds 2. */
export class Holdings {
  private readonly held = new Map<string, number>();
  private readonly fair: number;

  /** `waiting`: the namespaces of those that wait. */
  constructor(gpus: readonly Pick<GpuState, 'running'>[], waiting: ReadonlySet<string>) {
    for (const { running } of gpus) for (const { task, share } of running) this.add(task, share);
    const active = new Set([...this.held.keys(), ...waiting]);
    this.fair = active.size > 1 ? gpus.length / active.size : Infinity;
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
