// Instances of functions under PROTEAN's scaling, without a look at where they run.
import type { Scale } from '@gpuwhisk/gpu/scale/scale';
import type { FunctionState, InstanceState, Task } from '@gpuwhisk/gpu/view/view';
import type { Batch } from './arrivals.js';
import { functionOf, newFunction, type KnownFunction } from './protean-functions.js';

/** A start until the instance serves, ms. An assumption: the paper has up to tens of seconds. */
const startMs = 5000;
/** A run takes so many times its time alone: the middle of an SLO of three times it. */
const stretch = 1.5;

interface Instance extends Omit<InstanceState, 'state' | 'tasks' | 'idleSince'> {
  busyUntilMs: number;
  task: string | undefined;
}

/**
 * Instances that are started while batches come: for each batch that finds none of its function idle, and those that the stage launches each
 * second. A batch runs in the instance that is started for it.
 */
export function coldStarts(batches: readonly Batch[], scale: Scale): number {
  const functions = new Map<string, KnownFunction>();
  const instances = new Map<string, Instance[]>();
  let started = 0;
  let nextTick = 1000;
  const start = (name: string, nowMs: number): Instance => {
    started += 1;
    const one: Instance = {
      ...{ id: `${name} ${started}`, function: name, namespace: 'n', gpus: ['gpu0'], memoryMiB: 1 },
      ...{ share: { request: 1, limit: 1, class: 1 }, busyUntilMs: nowMs + startMs, task: undefined },
    };
    instances.set(name, [...(instances.get(name) ?? []), one]);
    return one;
  };
  for (const batch of batches) {
    for (; nextTick <= batch.readyMs; nextTick += 1000) tick(nextTick);
    const name = functionOf(batch);
    const known = functions.get(name) ?? newFunction(batch);
    functions.set(name, known);
    known.count(batch);
    const idle = (instances.get(name) ?? []).find(({ busyUntilMs }) => busyUntilMs <= batch.readyMs);
    const one = idle ?? start(name, batch.readyMs);
    const ranMs = batch.soloMs * stretch;
    one.busyUntilMs = Math.max(one.busyUntilMs, batch.readyMs) + ranMs;
    one.task = `${batch.id}`;
    known.ran(ranMs);
  }
  return started;

  function tick(at: number): void {
    const shown = [...instances.values()].flat().map((one) => stateOf(one, at));
    const view = { at, gpus: [], waiting: [] as Task[], instances: shown, functions: statesOf(functions) };
    const { launch, retire } = scale(view);
    for (const { of, count } of launch) for (let made = 0; made < count; made += 1) start(of.task.function, at);
    const gone = new Set(retire.map(({ instance }) => instance));
    if (gone.size === 0) return;
    for (const [name, there] of instances)
      instances.set(
        name,
        there.filter(({ id }) => !gone.has(id)),
      );
  }
}

const statesOf = (functions: ReadonlyMap<string, KnownFunction>): FunctionState[] =>
  Array.from(functions.values(), ({ state }) => state);

function stateOf({ busyUntilMs, task, ...one }: Instance, at: number): InstanceState {
  if (busyUntilMs > at)
    return { ...one, state: task === undefined ? 'loading' : 'running', tasks: task === undefined ? [] : [task] };
  return { ...one, state: 'idle', tasks: [], idleSince: busyUntilMs };
}
