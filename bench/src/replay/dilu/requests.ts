// Requests of one function: those that wait, and the counts that scale stages read.
import { ArrivalCounts, countedMinutes } from '@gpuwhisk/gpu/view/function-log';
import type { Task } from '@gpuwhisk/gpu/view/view';
import type { ServedModel } from './served-models.js';

/** Requests that wait, by arrival; those that cannot meet their SLO any more go after the others. */
export class WaitingRequests {
  private readonly intime = new Queue();
  private readonly late = new Queue();

  get size(): number {
    return this.intime.size + this.late.size;
  }

  push(at: number): void {
    this.intime.push(at);
  }

  /** When the next one arrived; Infinity if there is none. */
  first(): number {
    return this.intime.size > 0 ? this.intime.first() : this.late.first();
  }

  /** Finds those that a run of `runMs` from now on cannot serve within the SLO. */
  demote(at: number, runMs: number, sloMs: number): void {
    while (this.intime.size > 0 && this.intime.first() + sloMs < at + runMs) this.late.push(this.intime.take());
  }

  /** The arrival of the next one. */
  take(): number {
    return this.intime.size > 0 ? this.intime.take() : this.late.take();
  }
}

/** Arrival times in order. */
class Queue {
  private times: number[] = [];
  private head = 0;

  get size(): number {
    return this.times.length - this.head;
  }

  push(at: number): void {
    this.times.push(at);
  }

  /** Infinity if there is none. */
  first(): number {
    return this.times[this.head] ?? Infinity;
  }

  take(): number {
    const first = this.first();
    this.head += 1;
    if (this.head > 1024 && this.head * 2 > this.times.length) {
      this.times = this.times.slice(this.head);
      this.head = 0;
    }
    return first;
  }
}

/** Counts by second as the platform keeps them; a minute of it is a second, as the traces play ten minutes in one. */
export class Arrivals {
  private readonly counts = new ArrivalCounts();
  private readonly seconds: Uint32Array;

  constructor(lengthS: number) {
    this.seconds = new Uint32Array(lengthS + 1);
  }

  add(at: number): void {
    this.counts.add(at);
    const second = Math.floor(at / 1000);
    this.seconds[second] = (this.seconds[second] ?? 0) + 1;
  }

  bySecond(at: number): Uint32Array {
    return this.counts.bySecond(at);
  }

  byMinute(at: number): Uint32Array {
    const next = Math.floor(at / 1000) + 1;
    return this.seconds.subarray(Math.max(0, next - countedMinutes), next);
  }
}

/** The function of a model as scale stages see it. */
export function taskOf({ name, batch, sloMs }: ServedModel): Task {
  const identity = { id: name, function: `/bench/${name}`, version: '1', namespace: 'bench' };
  return { ...identity, batch, gpus: 1, memoryMiB: 0, arrivedAt: 0, sloMs, class: 'inference' };
}
