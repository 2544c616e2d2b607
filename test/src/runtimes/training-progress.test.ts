// Which jobs are told to stall: those that make no step for far longer than before, and no healthy ones.
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from '@jest/globals';
import { hasPython } from '../support/machine.js';

const folder = fileURLToPath(new URL('../../../runtimes/training', import.meta.url));
/** Makes a step at each of the times, seconds, and says for others whether the training is told to hang then. */
const script = `import json, sys
sys.path.insert(0, ${JSON.stringify(folder)})
import gpuwhisk_training as training
now = 0.0
training.time.monotonic = lambda: now
meter = training._Meter()
told = []
for step, look in json.loads(sys.argv[1]):
    if step is not None:
        now = step
        meter.add(1)
        meter.rate()
    else:
        now = look
        meter.rate()
        told.append(meter.hangs())
print(json.dumps(told))
`;

/** At which of the times without a step the training counts as stalled. */
function stallsAt(steps: readonly number[], looks: readonly number[]): number[] {
  const events = [...steps.map((at) => [at, null]), ...looks.map((at) => [null, at])];
  events.sort((one, other) => Number(one[0] ?? one[1]) - Number(other[0] ?? other[1]));
  const printed = execFileSync('python3', ['-B', '-c', script, JSON.stringify(events)], { encoding: 'utf8' });
  const told = JSON.parse(printed) as boolean[];
  return [...looks].sort((one, other) => one - other).filter((_, at) => told[at]);
}

const every = (seconds: number, count: number, from = 0): number[] =>
  Array.from({ length: count }, (_, at) => from + (at + 1) * seconds);

(hasPython ? describe : describe.skip)('a job', () => {
  test('that loads, and has made one step, is not told to stall', () => {
    expect(stallsAt([], [1, 1000])).toEqual([]);
    expect(stallsAt([10], [11, 1000])).toEqual([]);
  });

  test('that pauses between short steps, as for a checkpoint, is not, until the pause is long', () => {
    expect(stallsAt(every(0.5, 100), [52, 60, 105, 115])).toEqual([115]);
  });

  test('that writes progress rarely is not while a step takes some times longer', () => {
    expect(stallsAt(every(300, 5), [1900, 2700, 4400, 4600])).toEqual([4600]);
  });

  test('is measured by the pauses that it has made before', () => {
    const steps = [...every(1, 50), ...every(1, 50, 250)];
    expect(stallsAt(steps, [500, 690, 720])).toEqual([720]);
  });
});
