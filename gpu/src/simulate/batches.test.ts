import { expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { makePolicy } from '../policies/make-policy.js';
import { dividedSms, taskOf } from '../testing/fixtures.js';
import { requestOfTask } from '../view/requests.js';
import { replay } from './replay.js';
import type { TruthClient } from './replay.js';

test('requests gather in an instance while it starts and runs a batch, and hold its memory once', () => {
  const arrivals = [0, 10, 20, 30, 210];
  const jobs = arrivals.map((arrivedAt, at) => {
    const task = taskOf(`t${at}`, { arrivedAt, memoryMiB: 6000, batch: 2, startMs: 100 });
    return {
      task: { ...task, request: { ...requestOfTask(task), batch: 2 } },
      workload: 'f',
      soloMs: 100,
      startMs: 100,
    };
  });
  const seen = new Set<string>();
  const truth = {
    noise: 0,
    used: () => 1,
    // Two together take half as long again as one.
    slowdowns(clients: readonly TruthClient[]) {
      for (const { requests = 1 } of clients) seen.add(`${clients.length} with ${requests}`);
      return Float64Array.from(clients, ({ requests = 1 }) => 0.5 + requests / 2);
    },
  };
  const policy = makePolicy('least-loaded', {
    ...{ predictorOf: () => dividedSms, random: seededRandom(1), admission: 'best-effort' },
  });
  const places = [{ id: 'g0', node: 'n', type: 't', mode: 'mps' as const, memoryMiB: 10_000, idle: [] }];
  const { finished } = replay(jobs, { places, warmMs: 0 }, truth, policy, seededRandom(1));
  const times = Object.fromEntries(
    finished.map(({ job, startedAt, finishedAt }) => [job.task.id, [startedAt, finishedAt].map(Math.round)]),
  );
  // The first runs alone, then two and two; a batch of two has room for the next two only.
  expect(times).toEqual({ t0: [0, 200], t1: [200, 350], t2: [200, 350], t3: [350, 500], t4: [350, 500] });
  expect(seen).toEqual(new Set(['1 with 1', '1 with 2']));
});
