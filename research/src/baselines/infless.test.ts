import { expect, test } from '@jest/globals';
import { taskOf } from '@gpuwhisk/gpu/testing/fixtures';
import { viewOf } from '@gpuwhisk/gpu/testing/views';
import type { FunctionState, InstanceState } from '@gpuwhisk/gpu/view/view';
import { inflessDefaults, inflessScale } from './infless.js';

const at = 100_000;

/** A function whose last seconds had these requests, the newest last. */
function functionOf(seconds: readonly number[]): FunctionState {
  const bySecond = (): Uint32Array => {
    const counts = new Uint32Array(60);
    // The second of the view is not over.
    counts.set(seconds, counts.length - 1 - seconds.length);
    return counts;
  };
  return { task: taskOf('last'), arrivals: { bySecond, byMinute: bySecond }, served: { request: 100, limit: 150 } };
}

function instanceOf(id: string, changes: Partial<InstanceState> = {}): InstanceState {
  const share = { request: 0.3, limit: 0.6, class: 0.7 };
  const known = { function: '/a/f', namespace: 'a', gpus: ['g0'], memoryMiB: 1000, tasks: [], share };
  return { id, ...known, state: 'running', ...changes };
}

test('infless keeps an instance that is not wanted for as long as idle times of the function last', () => {
  const scale = inflessScale({ ...inflessDefaults, minuteS: 1 });
  // Two seconds with requests, three without.
  const pattern = Array.from({ length: 59 }, (_, second) => (second % 5 < 2 ? 1 : 0));
  const idle = (id: string, ms: number): InstanceState => instanceOf(id, { state: 'idle', idleSince: at - ms });
  const viewWith = (of: FunctionState, instances: InstanceState[]) => viewOf({ at, functions: [of], instances });
  const seen = [idle('a', 0), idle('b', 2999), idle('c', 3000)];
  const { launch, retire } = scale(viewWith(functionOf(pattern), seen));
  expect([launch, retire.map(({ instance }) => instance)]).toEqual([[], ['c']]);
  expect(scale(viewWith(functionOf([...pattern.slice(1), 290]), [instanceOf('i0')])).launch).toMatchObject([
    { count: 1 },
  ]);
});
