// Queue order by the use of the GPU for each unit of interference (SMORE, thesis equation 3.8).
import { keepNewest } from '@gpuwhisk/common/collections';
import type { ObservedRun } from '../../view/decision.js';
import type { Task, WorkloadState } from '../../view/view.js';
import { isOverdue } from '../../stages/order/earliest-deadline.js';
import type { Order } from '../../stages/order/order.js';

/** Keeps the quotient finite (ε of equation 3.8). */
const smallest = 1e-5;
/** Use that is assumed of a function without figures, fraction of the SMs. */
const unknownUse = 0.5;
/** Weight of the newest run in a function's mean degradation. */
const newest = 0.1;
/** Functions that are remembered; beyond that the one whose last run is oldest is forgotten. */
const maxFunctions = 10_000;

/** By function, the mean degradation of its runs beside others. */
export type SavedInterference = readonly (readonly [string, number])[];

/** P(f) = E[U(f)] / (E[ΔLat(f)] + ε): the expected use of the SMs over the expected degradation of the function's runs. */
export class InterferencePriority {
  private means = new Map<string, number>();

  /** The priority of a task: the highest goes first. A function that has not run beside others yet is taken not to suffer. */
  of({ function: name, features }: Pick<Task, 'function' | 'features'>): number {
    return (features?.smUtil ?? unknownUse) / ((this.means.get(name) ?? 0) + smallest);
  }

  /** A run of a function beside others got slower by `degradation` (D). */
  observe(name: string, degradation: number): void {
    if (!Number.isFinite(degradation)) return;
    const now = Math.max(0, degradation);
    const known = this.means.get(name);
    keepNewest(this.means, name, known === undefined ? now : known + newest * (now - known), maxFunctions);
  }

  /** Overdue tasks by arrival, then the others by priority. */
  turns(tasks: readonly Task[], at: number): { task: Task; isOverdue: boolean }[] {
    const turns = tasks.map((task) => {
      const late = isOverdue({ arrivedMs: task.arrivedAt, sloMs: task.sloMs }, at);
      return { task, isOverdue: late, key: late ? 0 : -this.of(task) };
    });
    turns.sort(
      (one, other) =>
        Number(other.isOverdue) - Number(one.isOverdue) ||
        one.key - other.key ||
        one.task.arrivedAt - other.task.arrivedAt,
    );
    return turns;
  }

  /** The state, for `restore`. */
  saved(): SavedInterference {
    return [...this.means];
  }

  /** Takes the state of another one. */
  restore(means: SavedInterference): void {
    this.means = new Map(means);
  }
}

/** The stage `order` by this priority, which learns from runs beside workloads and other functions. */
export function mostUseForInterference(): Order {
  const priority = new InterferencePriority();
  let present: readonly WorkloadState[] = [];
  const order: Order = (tasks, at, workloads = []) => {
    present = workloads;
    return priority.turns(tasks, at);
  };
  return Object.assign(order, {
    observe({ task, gpu, ranMs, beside }: ObservedRun): void {
      const measured = degradationOf(task, ranMs);
      if (measured === undefined) return;
      const isShared = beside.length > 0 || present.some(({ device }) => device === gpu.id);
      if (isShared) priority.observe(task.function, measured);
    },
    saved: () => priority.saved(),
    restore: (saved: unknown) => priority.restore(saved as SavedInterference),
  });
}

/** The measured degradation (D) of a run; undefined if its time alone is not known. */
export function degradationOf({ soloMs }: Task, ranMs: number): number | undefined {
  return soloMs !== undefined && soloMs > 0 && ranMs >= 0 ? ranMs / soloMs - 1 : undefined;
}
