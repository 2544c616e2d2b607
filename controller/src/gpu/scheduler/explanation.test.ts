import { describe, expect, test } from '@jest/globals';
import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import type { GpuQueued, GpuRecord, Placement } from '@gpuwhisk/common/gpu';
import type { DecisionRecord, RunFacts } from '@gpuwhisk/common/gpu-decisions';
import type { JsonValue } from '@gpuwhisk/common/json';
import { explanation } from './explanation.js';

const share = { shareClass: 100, smRequest: 1, smLimit: 1, memoryMiB: 1000 } as const;
const placement: Placement = {
  ...{ invoker: 'invoker0', devices: ['GPU-0'], share, at: 0, epoch: 1, version: 1 },
};
const decision = (changes: Partial<DecisionRecord> = {}): DecisionRecord => ({
  ...{ at: 0, activationId: 'a', action: '/guest/f', namespace: 'guest', policy: 'auto' },
  ...{ reason: 'placed: it fits', placement, rejected: [] },
  ...changes,
});
const waits = (changes: Partial<DecisionRecord> = {}): DecisionRecord => {
  const { placement: none, ...others } = decision({ reason: 'it waits', ...changes });
  return none === undefined ? decision() : others;
};

/** A record of these times, ms: in the queue, until its container was there, for its code, and of its run. */
function recordOf(
  [queueMs, containerMs, initMs, runMs]: [number, number, number, number],
  gpu: Partial<GpuRecord> = {},
): WhiskActivation {
  const own: GpuRecord = {
    ...{ device: 'GPU-0', share: 1, queueMs, actualMs: initMs + runMs, start: initMs > 0 ? 'cold' : 'warm' },
    ...gpu,
  };
  const annotations = [
    { key: 'waitTime', value: queueMs + containerMs },
    ...(initMs > 0 ? [{ key: 'initTime', value: initMs }] : []),
    { key: 'gpu', value: own as unknown as JsonValue },
  ];
  return {
    ...{ namespace: 'guest', name: 'f', version: '0.0.1', subject: 's', activationId: 'a', start: 0, end: 0 },
    ...{ duration: initMs + runMs, response: { statusCode: 0 }, logs: [], publish: false, annotations },
  };
}

const beside = (name: string, part = 1, namespace = 'guest'): RunFacts['beside'][number] => ({
  ...{ action: namespace === '' ? name : `/${namespace}/${name}`, namespace, part },
});
const ran = (times: [number, number, number, number], run?: RunFacts, changes: Partial<DecisionRecord> = {}) =>
  explanation({ decisions: [decision({ ...(run && { run }), ...changes })], record: recordOf(times) });

describe('a run', () => {
  test('that lost a little beside others, and missed its SLO in the queue', () => {
    const run = { aloneMs: 77, slowdown: 1.06, beside: [beside('b', 1), beside('c', 0.9)] };
    const waitedFor = 'too little free memory';
    const decisions = [decision({ run, sloMs: 200, waitedFor }), waits({ ahead: 11, sloMs: 200 })];
    expect(explanation({ decisions, record: recordOf([883, 0, 0, 82]) })).toBe(
      'Queued 883 ms (11 ahead, GPU shared 3 ways), ran 82 ms (6 % slower than alone beside `/guest/b` and `/guest/c`), ' +
        'SLO 200 ms: missed by 765 ms because it waited 883 ms for a GPU (too little free memory). ' +
        'What would have helped: a smaller `memoryMiB`, or a GPU with more memory.',
    );
  });

  test('of which nothing but its times is known has no other figure', () => {
    expect(explanation({ decisions: [], record: recordOf([0, 0, 0, 82]) })).toBe('Ran 82 ms.');
    expect(ran([0, 0, 0, 82], { beside: [beside('b')] })).toBe('Ran 82 ms (GPU shared 2 ways, beside `/guest/b`).');
  });

  test('that is slow without a neighbour blames none', () => {
    const run: RunFacts = { aloneMs: 105, slowdown: 7.81, beside: [] };
    expect(ran([0, 0, 0, 820], run)).toBe(
      'Ran 820 ms (alone, 7.8 times its time alone of 105 ms, which no neighbour explains).',
    );
    expect(ran([0, 0, 0, 108], { ...run, slowdown: 1.03 })).toBe('Ran 108 ms.');
    expect(ran([0, 0, 0, 820], run, { sloMs: 500 })).toBe(
      'Ran 820 ms (alone, 7.8 times its time alone of 105 ms, which no neighbour explains), ' +
        'SLO 500 ms: missed by 320 ms because its run took 820 ms. ' +
        'What would have helped: an `sloMs` above 820 ms, or less work in a call.',
    );
  });

  test('hides functions of other namespaces, and counts what it does not name', () => {
    const hidden = { action: 'a function of another namespace', namespace: '', part: 0.5 };
    const others = [beside('b', 0.5), hidden, { ...hidden }, beside('c', 0.5), beside('d', 0.5)];
    expect(ran([0, 0, 0, 50], { aloneMs: 50, slowdown: 1, beside: others, workloads: 2 })).toBe(
      'Ran 50 ms (GPU shared 4 ways, no slower than alone beside `/guest/b` and a function of another namespace and `/guest/c` and 1 more and 2 workloads).',
    );
  });

  test('is not said to have lost more than its neighbours can take', () => {
    const run = { aloneMs: 100, slowdown: 3.6, beside: [beside('b')] };
    expect(ran([0, 0, 0, 360], run)).toBe(
      'Ran 360 ms (GPU shared 2 ways, 3.6 times its time alone of 100 ms beside `/guest/b`, more than neighbours explain).',
    );
    expect(ran([0, 0, 0, 360], run, { sloMs: 200 })).toContain('missed by 160 ms because its run took 360 ms.');
  });

  test('that is too long by itself blames no start', () => {
    expect(ran([0, 100, 50, 254], { beside: [] }, { sloMs: 200 })).toBe(
      'Started for 150 ms (cold), ran 254 ms, SLO 200 ms: missed by 204 ms because its run took 254 ms and its start 150 ms. ' +
        'What would have helped: an `sloMs` above 254 ms, or less work in a call.',
    );
  });

  test('in a warm instance leaves out a short start', () => {
    expect(ran([0, 3, 0, 100])).toBe('Ran 100 ms.');
    expect(ran([0, 30, 0, 100])).toBe('Started for 30 ms, ran 100 ms.');
  });

  test('beside unknown work is not said to have been slowed down by it', () => {
    expect(ran([0, 0, 0, 60], { aloneMs: 50, slowdown: 1.2, beside: [], unknownBeside: true })).toBe(
      'Ran 60 ms (20 % slower than alone, beside work that is not known).',
    );
  });

  test('that met its SLO says by how much', () => {
    expect(ran([5, 0, 0, 60], { beside: [] }, { sloMs: 200 })).toBe(
      'Queued 5 ms, ran 60 ms, SLO 200 ms: met with 135 ms to spare.',
    );
  });

  test('with a late start names an instance ahead of requests', () => {
    expect(ran([1, 400, 1800, 60], { beside: [] }, { sloMs: 1000 })).toBe(
      'Queued 1 ms, started for 2.20 s (cold), ran 60 ms, SLO 1.00 s: missed by 1.26 s because its start took 2.20 s (cold). ' +
        'What would have helped: an instance ahead of the request (wsk gpu launch /guest/f).',
    );
  });

  test('that takes longer than its SLO alone says so', () => {
    const run = { aloneMs: 300, slowdown: 1.5, beside: [beside('b')] };
    expect(ran([0, 0, 0, 450], run, { sloMs: 200 })).toContain(
      'SLO 200 ms: missed by 250 ms because it takes 300 ms alone. What would have helped: an `sloMs` above 300 ms, or a faster GPU.',
    );
  });

  test('that its neighbours made late names isolation', () => {
    const run = { aloneMs: 100, slowdown: 2, beside: [beside('b')] };
    expect(ran([0, 0, 0, 200], run, { sloMs: 150 })).toContain(
      'missed by 50 ms because neighbours took 100 ms of its time. What would have helped: `isolation: exclusive`',
    );
  });

  test('without an SLO has a hint where it waited for most of its time', () => {
    const waitedFor = 'it serves one process at a time';
    const decisions = [decision({ run: { beside: [] }, waitedFor }), waits({ ahead: 1 })];
    expect(explanation({ decisions, record: recordOf([900, 0, 0, 100]) })).toBe(
      'Queued 900 ms (1 ahead), ran 100 ms. What would have helped: MPS (gpu.manage.mps), so that functions share the GPU.',
    );
    expect(explanation({ decisions, record: recordOf([90, 0, 0, 100]) })).toBe('Queued 90 ms (1 ahead), ran 100 ms.');
  });

  test('with a part of the SMs and in a batch says so', () => {
    const record = recordOf([0, 0, 0, 82], { share: 0.3, batch: 4 });
    expect(explanation({ decisions: [decision()], record })).toBe('Ran 82 ms (30 % of the SMs, in a batch of 4).');
  });
});

describe('an activation that has not run', () => {
  const queued: GpuQueued = {
    ...{ activationId: 'a', action: '/guest/f', namespace: 'guest', position: 3, waitedMs: 883, memoryMiB: 1000 },
    ...{ gpus: 1, refusals: [], rejected: [] },
  };

  test('waits behind others, with the reason', () => {
    const rejected = [{ what: 'GPU-0', reason: 'isolation: it is shared with others', numbers: { others: 1 } }];
    expect(explanation({ decisions: [], queued: { ...queued, sloMs: 1500, rejected } })).toBe(
      'Queued for 883 ms (2 ahead), SLO 1.50 s, as isolation: it is shared with others. ' +
        'What would have helped: `isolation: shared` in annotation gpu of both functions.',
    );
    expect(explanation({ decisions: [], queued })).toBe('Queued for 883 ms (2 ahead).');
  });

  test('was refused', () => {
    expect(explanation({ decisions: [waits({ reason: 'No GPU became free' })] })).toBe('Not run: No GPU became free.');
  });

  test('was placed and has no record', () => {
    expect(explanation({ decisions: [decision(), waits({ ahead: 2 })] })).toBe(
      'Placed on GPU-0 (2 ahead); its record is not there yet.',
    );
  });

  test('is not known', () => {
    expect(explanation({ decisions: [] })).toBeUndefined();
  });
});
