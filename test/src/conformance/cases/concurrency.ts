import { expect } from '@jest/globals';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import { actionBody } from '../../support/api-client.js';
import type { Activation, Trial } from '../trial.js';

/** An action whose run ends once `together` runs are under way in its container. */
const meet = `let here = 0;
async function main({ together, warm }) {
  if (warm) return { warm };
  here++;
  const beganMs = Date.now();
  while (here < together) {
    if (Date.now() - beganMs > 10000) return { error: 'only ' + here + ' came' };
    await new Promise((done) => setTimeout(done, 20));
  }
  return { msg: 'Received ' + here + ' activations.' };
}`;

const failOne = `function main({ fail }) {
  if (fail) throw new Error('on purpose');
  return new Promise((done) => setTimeout(() => done({ done: true }), 200));
}`;

/** An action that ends its process in the first run of each container. */
const endAll = `let runs = 0;
function main() {
  if (runs++ % 2 === 0) process.exit(123);
  return new Promise((done) => setTimeout(() => done({ done: true }), 200));
}`;

async function concurrent(t: Trial, code: string, concurrency: number): Promise<string> {
  const name = t.name('action');
  await t.replace(`actions/${name}`, actionBody(code, { limits: { concurrency, logs: 0 } }));
  return name;
}

const rows: Row[] = [
  {
    fact: 'several activations are in a container at once',
    stands: 'ConcurrencyTests: execute activations concurrently when concurrency > 1',
    run: async (t) => {
      const name = await concurrent(t, meet, 5);
      const warm = await t.run(name, { warm: 1 });
      expect([warm.logs, warm.response.result]).toEqual([[], { warm: 1 }]);
      const together = 4;
      const replies = await Promise.all(Array.from({ length: together }, () => t.invoke(name, { together })));
      for (const { body } of replies)
        expect((body as Activation).response.result).toEqual({ msg: `Received ${together} activations.` });
    },
  },
  {
    fact: 'where one fails, all are answered, and others may succeed',
    stands: 'ConcurrencyTests: allow concurrent activations to gracefully complete when one fails',
    run: async (t) => {
      const name = await concurrent(t, failOne, 2);
      const replies = await Promise.all([false, true, false].map((fail) => t.invoke(name, { fail })));
      const statuses = replies.map(({ status }) => status);
      expect(statuses[1]).toBe(502);
      expect(statuses.filter((status) => status === 200).length).toBeGreaterThan(0);
    },
  },
  {
    fact: 'where the process ends, all that were in it do, and are answered',
    stands: 'ConcurrencyTests: allow concurrent activations to gracefully complete when one fails catastrophically',
    run: async (t) => {
      const name = await concurrent(t, endAll, 2);
      const replies = await Promise.all(Array.from({ length: 4 }, () => t.invoke(name)));
      expect(replies.map(({ status }) => status)).toEqual([502, 502, 502, 502]);
    },
  },
];

/** Sheet 3: several activations in one container. */
export const concurrencyCases = table(
  'concurrency',
  'core/invoker/.../core/containerpool/ContainerPool.scala',
  rows.map((row) => ({ ...row, needs: 'concurrency' as const })),
);
