// Batches as the platform's stages see them: tasks of functions, and what is known of these.
import type { PlacementRequest } from '@gpuwhisk/gpu/view/account';
import { countedSeconds } from '@gpuwhisk/gpu/view/function-log';
import type { FunctionState, Task } from '@gpuwhisk/gpu/view/view';
import type { Batch } from './arrivals.js';
import { sloFactor } from './metrics.js';
import type { ServedModel } from './world.js';

const names = new WeakMap<ServedModel, { strict: string; rest: string }>();

/** Strict and best-effort requests of a model are functions of their own. Always the same string: comparisons of it are quick then. */
export function nameOf(model: ServedModel, isStrict: boolean): string {
  let found = names.get(model);
  if (found === undefined) {
    found = { strict: `/n/${model.name} strict`, rest: `/n/${model.name}` };
    names.set(model, found);
  }
  return isStrict ? found.strict : found.rest;
}

export const functionOf = ({ model, isStrict }: Pick<Batch, 'model' | 'isStrict'>): string => nameOf(model, isStrict);

export const idOf = ({ id }: Batch): string => `batch${id}`;

const tasks = new WeakMap<Batch, Task>();

/** A batch as a task, the same one each time. */
export function taskOf(batch: Batch): Task {
  const known = tasks.get(batch);
  if (known !== undefined) return known;
  const task = newTask(batch);
  tasks.set(batch, task);
  return task;
}

function newTask(batch: Batch): Task {
  const { model, isStrict, firstMs } = batch;
  return {
    ...{ id: idOf(batch), function: functionOf(batch), version: '1', namespace: 'n', gpus: 1, class: 'inference' },
    ...{ batch: model.batch, memoryMiB: model.memoryMiB, soloMs: model.soloMs, arrivedAt: firstMs },
    ...(isStrict && { sloMs: (batch.sloFactor ?? sloFactor) * model.soloMs }),
  };
}

/** Each slice is shared without limits (paper, section 6.2: the default MPS configuration). */
export function requestOf({ function: action, namespace, memoryMiB }: Task): PlacementRequest {
  const share = { smRequest: 0.01, smLimit: 1, shareClass: 100 as const, memoryMiB };
  return { ...{ action, namespace, isolation: 'shared', share, memoryMiB, gpus: 1, batch: 1, isBounded: false } };
}

/** What is known of a function. */
export interface KnownFunction {
  state: FunctionState;
  count(batch: Batch): void;
  ran(ms: number): void;
}

/** Weight of the newest run in the mean time, as live. */
const newest = 0.2;

/** A function of which no request has come. */
export function newFunction(batch: Batch): KnownFunction {
  const counts = new Map<number, number>();
  const task = taskOf(batch);
  const state: FunctionState = {
    // As live, where requests are gathered into batches.
    task: { ...task, request: { ...requestOf(task), batch: task.batch } },
    arrivals: {
      bySecond(at) {
        const last = Math.floor(at / 1000);
        return Uint32Array.from({ length: countedSeconds }, (_, i) => counts.get(last - countedSeconds + 1 + i) ?? 0);
      },
      byMinute: () => new Uint32Array(1440),
    },
  };
  return {
    state,
    count({ readyMs, count }) {
      const second = Math.floor(readyMs / 1000);
      counts.set(second, (counts.get(second) ?? 0) + count);
    },
    ran(ms) {
      state.runMs = state.runMs === undefined ? ms : state.runMs + newest * (ms - state.runMs);
    },
  };
}
