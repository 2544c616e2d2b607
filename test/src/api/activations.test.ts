import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import { activationDocument } from '@gpuwhisk/common/entities/activation';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import { NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import { openLmdbStore } from '@gpuwhisk/common/store/lmdb-store';
import { alice, bob, errorOf, startApi } from './harness.js';
import type { Api } from './harness.js';

const list = '/api/v1/namespaces/_/activations';
const id = (number: number): string => number.toString(16).padStart(32, '0');

/** The activation that started at `number` × 100: of `a` if `number` is even, of `pkg/b` if it is odd. */
function record(number: number): WhiskActivation {
  const even = number % 2 === 0;
  return {
    namespace: 'alice',
    name: even ? 'a' : 'b',
    version: '0.0.1',
    subject: alice.subject,
    activationId: id(number),
    start: number * 100,
    end: number * 100 + 5,
    duration: 5,
    response: { statusCode: 0, result: { number }, size: 12 },
    logs: [`line ${number}`],
    publish: false,
    annotations: [{ key: 'path', value: even ? 'alice/a' : 'alice/pkg/b' }],
  };
}

const trigger: WhiskActivation = {
  ...record(2),
  name: 'trigger',
  activationId: id(999),
  start: 50,
  end: 0,
  annotations: [],
  cause: id(1),
};

let api: Api;
beforeAll(async () => {
  api = await startApi();
  const records = [trigger, ...Array.from({ length: 40 }, (_, index) => record(index + 1))];
  await api.store.createMany(
    'activations',
    records.map((each) => activationDocument(each, 1)),
  );
});
afterAll(() => api.close());

const ids = (json: unknown): string[] => (json as { activationId: string }[]).map((row) => row.activationId);
const from = (first: number, last: number, step = 1): string[] => {
  const numbers: string[] = [];
  for (let number = first; number >= last; number -= step) numbers.push(id(number));
  return numbers;
};

describe('listing', () => {
  test.each([
    ['', from(40, 11)],
    ['/', from(40, 11)],
    ['?limit=3', from(40, 38)],
    ['?limit=3&skip=2', from(38, 36)],
    ['?limit=0', [...from(40, 1), id(999)]],
    ['?name=a&limit=2', from(40, 38, 2)],
    ['?name=pkg/b&limit=2', from(39, 37, 2)],
    ['?name=b', []],
    ['?name=', from(40, 11)],
    ['?since=3900', from(40, 39)],
    ['?since=3901', from(40, 40)],
    ['?upto=200', [...from(2, 1), id(999)]],
    ['?since=1000&upto=1200', from(12, 10)],
    ['?name=a&since=1000&upto=1400', from(14, 10, 2)],
    ['?since=99999999999', []],
  ])('%s', async (query, expected) => {
    expect(ids((await api.request('GET', list + query)).json)).toEqual(expected);
  });

  test('rows are summaries', async () => {
    const reply = await api.request('GET', `${list}?limit=1`);
    expect(reply.json).toEqual([
      {
        namespace: 'alice',
        name: 'a',
        version: '0.0.1',
        publish: false,
        annotations: [{ key: 'path', value: 'alice/a' }],
        activationId: id(40),
        start: 4000,
        end: 4005,
        duration: 5,
        statusCode: 0,
      },
    ]);
  });

  test('docs=true gives whole records', async () => {
    const reply = await api.request('GET', `${list}?limit=1&docs=true&name=pkg/b`);
    const { response, ...rest } = record(39);
    expect(response.statusCode).toBe(0);
    expect(reply.json).toEqual([
      { ...rest, response: { status: 'success', success: true, result: { number: 39 }, size: 12 } },
    ]);
  });

  test.each([
    ['?count=true', 41],
    ['?count=true&skip=11', 30],
    ['?count=true&skip=100', 0],
    ['?count=true&name=a', 20],
    ['?count=true&since=3900', 2],
  ])('%s counts', async (query, count) => {
    expect((await api.request('GET', list + query)).json).toEqual({ activations: count });
  });

  test.each([
    ['name=a/b/c', 'name', "Parameter may be a 'simple' name or 'package-name/simple' name: a/b/c"],
    ['name=bad!', 'name', "Parameter may be a 'simple' name or 'package-name/simple' name: bad!"],
    ['since=x', 'since', 'Parameter is not a valid value for epoch seconds: x'],
    ['upto=1.5', 'upto', 'Parameter is not a valid value for epoch seconds: 1.5'],
    ['upto=', 'upto', 'Parameter is not a valid value for epoch seconds: '],
    ['limit=201', 'limit', "The value '201' is not in the range of 0 to 200 for activations."],
    ['skip=-1', 'skip', "The value '-1' is not greater than or equal to 0 for activations."],
    ['docs=maybe', 'docs', "'maybe' is not a valid Boolean value"],
  ])('?%s is refused', async (query, parameter, detail) => {
    const reply = await api.request('GET', `${list}?${query}`);
    expect([reply.status, errorOf(reply)]).toEqual([
      400,
      `The query parameter '${parameter}' was malformed:\n${detail}`,
    ]);
  });

  test('docs and count exclude each other', async () => {
    const reply = await api.request('GET', `${list}?docs=true&count=true`);
    expect([reply.status, errorOf(reply)]).toEqual([400, "The parameter 'docs' is not permitted with 'count'."]);
  });
});

describe('one activation', () => {
  test('its record, logs and result', async () => {
    const { response, ...rest } = record(7);
    const shown = { status: 'success', success: true, result: response.result, size: 12 };
    for (const path of [`${list}/${id(7)}`, `${list}/${id(7)}/`]) {
      expect((await api.request('GET', path)).json).toEqual({ ...rest, response: shown });
    }
    expect((await api.request('GET', `${list}/${id(7)}/logs`)).json).toEqual({ logs: ['line 7'] });
    expect((await api.request('GET', `${list}/${id(7)}/result`)).json).toEqual(shown);
  });

  test('its record, where the store gets it only after the answer', async () => {
    const { store } = api;
    const get = store.get.bind(store);
    let misses = 0;
    jest.spyOn(store, 'get').mockImplementation((database, documentId) => {
      if (database === 'activations' && misses++ === 0) return Promise.reject(new NoDocumentError(documentId));
      return get(database, documentId);
    });
    const { status } = await api.request('GET', `${list}/${id(4)}`);
    jest.restoreAllMocks();
    expect({ status, misses }).toEqual({ status: 200, misses: 2 });
  });

  test("a trigger's has neither end nor duration", async () => {
    const { json } = await api.request('GET', `${list}/${id(999)}`);
    expect(json).toMatchObject({ start: 50, cause: id(1) });
    expect(json).not.toHaveProperty('end');
    expect(json).not.toHaveProperty('duration');
  });

  test.each([
    [id(12345), 404, 'The requested resource does not exist.'],
    ['abc', 400, 'Activation id length is 3 but must be 32.'],
    ['x'.repeat(33), 400, 'Activation id length is 33 but must be 32.'],
    ['G'.repeat(32), 400, 'The activation id is not valid.'],
  ])('%s', async (activation, status, text) => {
    for (const part of ['', '/logs', '/result']) {
      const reply = await api.request('GET', `${list}/${activation}${part}`);
      expect([reply.status, errorOf(reply)]).toEqual([status, text]);
    }
  });

  test('a record that cannot be read is said to be corrupted', async () => {
    await api.store.put('activations', { _id: `alice/${id(77777)}`, entityType: 'activation' });
    const reply = await api.request('GET', `${list}/${id(77777)}`);
    expect([reply.status, errorOf(reply)]).toEqual([500, 'Resource is corrupted and cannot be read.']);
  });
});

describe('records that are large together', () => {
  const line = 'x'.repeat(300_000);
  const large = (number: number): WhiskActivation => ({ ...record(number), namespace: 'bob', logs: [line] });

  test('come as a list that is sent in pieces, and one by one', async () => {
    await api.store.createMany(
      'activations',
      [1, 2, 3].map((number) => activationDocument(large(number), 1)),
    );
    const docs = await api.request('GET', `${list}?docs=true`, { as: bob });
    expect([docs.status, ids(docs.json)]).toEqual([200, [id(3), id(2), id(1)]]);
    expect(docs.json).toMatchObject([{ logs: [line], response: { result: { number: 3 } } }, {}, {}]);
    const logs = await api.request('GET', `${list}/${id(2)}/logs`, { as: bob });
    expect(logs.json).toEqual({ logs: [line] });
    const one = await api.request('GET', `${list}/${id(2)}`, { as: bob });
    expect(one.json).toMatchObject({ activationId: id(2), response: { status: 'success' } });
  });

  test('are read no further than the answer is sent', async () => {
    for (let count = 0; count < 70; count += 1) {
      expect((await api.request('HEAD', `${list}?docs=true`, { as: bob })).status).toBe(200);
    }
    expect((await api.request('GET', `${list}?docs=true`, { as: bob })).status).toBe(200);
  });
});

test('a record that has expired is in no list, no count and no answer from that instant on', async () => {
  const expiring = await startApi({ config: { recordTtlHours: 1 } });
  try {
    const hourMs = 3_600_000;
    const nowMs = Date.now();
    const ending = (number: number, end: number, start = end - 5): object =>
      activationDocument({ ...record(number), start, end, duration: end - start }, 1);
    const soonMs = 700;
    await expiring.store.createMany('activations', [
      ending(2, nowMs - 2 * hourMs),
      ending(4, nowMs - hourMs + soonMs),
      ending(6, nowMs - 100, nowMs - 5 * hourMs),
      ending(8, nowMs),
    ] as never);
    const get = (path: string) => expiring.request('GET', `${list}${path}`);
    const shown = async (): Promise<unknown> => [
      ids((await get('')).json),
      ids((await get('?docs=true')).json),
      ids((await get('?name=a&limit=200')).json),
      (await get('?count=true')).json,
      (await get('?count=true&name=a')).json,
    ];
    const expected = (...numbers: number[]): unknown[] => [
      ...[1, 2, 3].map(() => numbers.map(id)),
      ...[1, 2].map(() => ({ activations: numbers.length })),
    ];
    expect(await shown()).toEqual(expected(8, 4, 6));
    const statuses = async (number: number): Promise<number[]> =>
      Promise.all(['', '/logs', '/result'].map(async (part) => (await get(`/${id(number)}${part}`)).status));
    expect(await statuses(4)).toEqual([200, 200, 200]);
    await new Promise((resolve) => setTimeout(resolve, nowMs + soonMs + 1 - Date.now()));
    expect(await shown()).toEqual(expected(8, 6));
    for (const number of [2, 4]) expect(await statuses(number)).toEqual([404, 404, 404]);
    for (const number of [6, 8]) expect(await statuses(number)).toEqual([200, 200, 200]);
    // None of them was removed.
    expect(await expiring.store.list('activations', { limit: 10 })).toHaveLength(4);
  } finally {
    await expiring.close();
  }
});

describe('with more rows than a read may pass over', () => {
  const rows = 3000;
  const allowed = 2000;
  let folder: string;
  let store: ArtifactStore;
  let long: Api;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'gpuwhisk-rows-'));
    store = await openLmdbStore(folder, { mostRows: allowed });
    long = await startApi({ wrapStore: () => store });
    await store.createMany(
      'activations',
      Array.from({ length: rows }, (_, index) => activationDocument(record(index + 1), 1)),
    );
  });
  afterAll(async () => {
    await long.close();
    await store.close();
    await rm(folder, { recursive: true });
  });

  test.each(['count=true', `limit=1&skip=${allowed + 1}`, 'limit=1&skip=20000001'])('?%s is refused', async (query) => {
    const reply = await long.request('GET', `${list}?${query}`);
    const text = `More than ${allowed} entries would have to be counted or skipped: narrow the range.`;
    expect([reply.status, errorOf(reply)]).toEqual([400, text]);
  });

  test.each([
    [`count=true&since=${(rows - 1499) * 100}`, { activations: 1500 }],
    [`limit=1&skip=${allowed}`, [{ start: (rows - allowed) * 100 }]],
  ])('?%s is answered', async (query, answer) => {
    expect(await long.request('GET', `${list}?${query}`)).toMatchObject({ status: 200, json: answer });
  });
});
