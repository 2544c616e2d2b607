import { expect } from '@jest/globals';
import type { Reply } from '../caller.js';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import { echo } from '../functions.js';
import type { Entity } from '../trial.js';

const exists = '409 resource already exists';
const lostRace = '409 Concurrent modification to resource detected.';
const gone = '404 The requested resource does not exist.';
const writers = 12;

/** Sends the same request from all writers at once. */
function atOnce<Body>(request: (writer: number) => Promise<Reply<Body>>): Promise<Reply<Body>[]> {
  return Promise.all(Array.from({ length: writers }, (_, writer) => request(writer)));
}

/** The number of accepted requests. Expects one of `refusals` as the answer to each other request. */
function winners(replies: readonly Reply[], refusals: readonly string[]): number {
  const lost = replies.filter(({ status }) => status !== 200);
  const told = lost.map(({ status, body }) => `${status} ${(body as { error?: string }).error}`);
  expect(told.filter((one) => !refusals.includes(one))).toEqual([]);
  return replies.length - lost.length;
}

const bodies = { actions: { exec: { kind: 'nodejs:default', code: echo } }, packages: {}, triggers: {} };

const versionOf = ({ version }: Entity): number => Number(version.split('.')[2]);

const rows: Row[] = Object.entries(bodies).flatMap(([collection, body]): Row[] => [
  {
    fact: `${collection}: of many who create one, one does; the others find it, or lose to it`,
    run: async (t) => {
      const path = `${collection}/${t.name('race')}`;
      const replies = await atOnce(() => t.put(path, body));
      expect(winners(replies, [exists, lostRace])).toBe(1);
      expect((await t.get(path)).body.version).toBe('0.0.1');
    },
  },
  {
    fact: `${collection}: each update of many at once is made, or refused as it lost to another`,
    run: async (t) => {
      const path = `${collection}/${t.name('race')}`;
      await t.put(path, body);
      const replies = await atOnce((writer) =>
        t.put(`${path}?overwrite=true`, { parameters: [{ key: 'writer', value: writer }] }),
      );
      const won = winners(replies, [lostRace]);
      const { body: after } = await t.get(path);
      expect(won).toBeGreaterThan(0);
      // No update was lost: each accepted update increased the version by one.
      expect(versionOf(after)).toBe(1 + won);
      const last = replies.find((reply) => reply.status === 200 && reply.body.version === after.version);
      expect(last?.body.parameters).toEqual(after.parameters);
    },
  },
  {
    fact: `${collection}: of many who delete one, one does; the others do not find it, or lose`,
    run: async (t) => {
      const path = `${collection}/${t.name('race')}`;
      await t.put(path, body);
      const replies = await atOnce(() => t.delete(path));
      expect(winners(replies, [gone, lostRace])).toBe(1);
      expect((await t.get(path)).status).toBe(404);
    },
  },
]);

rows.push({
  fact: 'rules: the trigger knows each of many that were made at once and accepted',
  source: 'core/controller/.../core/controller/Rules.scala',
  run: async (t) => {
    const [action, trigger] = [await t.action(echo), t.name('trigger')];
    await t.put(`triggers/${trigger}`);
    const names = Array.from({ length: writers }, () => t.name('rule'));
    const replies = await atOnce((writer) =>
      t.put(`rules/${names[writer]}`, { trigger: `/_/${trigger}`, action: `/_/${action}` }),
    );
    winners(replies, [lostRace]);
    const accepted = names.filter((_, at) => replies[at]?.status === 200).map((name) => `${t.namespace}/${name}`);
    const { body } = await t.get<{ rules?: Record<string, unknown> }>(`triggers/${trigger}`);
    expect(Object.keys(body.rules ?? {})).toEqual(expect.arrayContaining(accepted));
    expect(accepted.length).toBeGreaterThan(0);
  },
});

/** Writers of the same entity at the same time. */
export const conflictCases = table('conflicts', 'core/controller/.../core/controller/ApiUtils.scala', rows);
