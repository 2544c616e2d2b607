import { expect, test } from '@jest/globals';
import type { SchedulingEvent } from '@gpuwhisk/gpu/view/view';
import { GpuEvents } from './gpu-queue.js';

const timer: SchedulingEvent = { kind: 'timer' };
const arrival = (task: string): SchedulingEvent => ({ kind: 'arrival', task });
const completion: SchedulingEvent = { kind: 'completion', task: 'a', gpu: 'GPU-0' };

function taken(events: readonly SchedulingEvent[]): SchedulingEvent[] {
  const pending = new GpuEvents();
  for (const event of events) pending.add(event);
  return pending.take();
}

test('each of a few arrivals is decided for itself, in order', () => {
  expect(taken([arrival('a'), arrival('b'), arrival('a')])).toEqual([arrival('a'), arrival('b')]);
});

test('after anything else, and after many arrivals, all who wait are looked at once', () => {
  expect(taken([arrival('a'), completion, arrival('b')])).toEqual([completion]);
  expect(taken([completion, { kind: 'timeout', task: 'b' }])).toEqual([timer]);
  expect(taken(['a', 'b', 'c', 'd', 'e'].map(arrival))).toEqual([timer]);
  expect(taken([])).toEqual([timer]);
});

test('nothing is told twice', () => {
  const pending = new GpuEvents();
  pending.add(completion);
  pending.add(arrival('a'));
  pending.take();
  expect(pending.take()).toEqual([timer]);
});
