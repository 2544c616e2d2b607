// Streams of logs of activations, with an invoker that the test plays.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { activationDocument } from '@gpuwhisk/common/entities/activation';
import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import { followChannel, followedLinesChannel, readFollowRequest } from '@gpuwhisk/common/activations/followed-logs';
import type { FollowedLines, FollowRequest } from '@gpuwhisk/common/activations/followed-logs';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { inFlightHolds } from '@gpuwhisk/controller/entitlement/in-flight';
import { alice, basic, bob, errorOf, startApi } from './harness.js';
import type { Api } from './harness.js';

let api: Api;
const id = (number: number): string => number.toString(16).padStart(32, '0');
const pathOf = (activationId: string): string => `/api/v1/namespaces/_/activations/${activationId}/logs?follow=true`;
beforeAll(async () => {
  api = await startApi();
});
afterAll(async () => {
  api.controller.liveStreams.close();
  await api.close();
});

const store = (activationId: string, logs: string[]): Promise<unknown> => {
  const record: WhiskActivation = {
    ...{ namespace: 'alice', name: 'a', version: '0.0.1', subject: alice.subject, activationId, logs },
    ...{ start: 1, end: 2, duration: 1, publish: false, annotations: [] },
    response: { statusCode: 0, result: {} },
  };
  return api.store.createMany('activations', [activationDocument(record, 1)]);
};
const begin = async (activationId: string): Promise<void> => {
  await inFlightHolds(api.state).hold(alice.uuid, `${activationId} 0 alice`, 60_000);
};
const tell = (told: FollowedLines): Promise<void> =>
  api.state.publish(followedLinesChannel(0), told as unknown as JsonValue);

/** The requests of the controller for one activation, as they come. */
async function requestsFor(activationId: string): Promise<{ next: () => Promise<FollowRequest> }> {
  const [come, waiting]: [FollowRequest[], ((one: FollowRequest) => void)[]] = [[], []];
  await api.state.subscribe(followChannel, (message) => {
    const request = readFollowRequest(message);
    if (request?.activationId !== activationId) return;
    const taker = waiting.shift();
    if (taker === undefined) come.push(request);
    else taker(request);
  });
  return {
    next: async () => come.shift() ?? new Promise<FollowRequest>((resolve) => waiting.push(resolve)),
  };
}

/** Events of a stream that are no signs of life. */
async function* eventsOf(activationId: string): AsyncGenerator<[event: string, data: JsonObject]> {
  const answer = await fetch(api.url + pathOf(activationId), { headers: { authorization: basic(alice) } });
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
  let text = '';
  for await (const chunk of answer.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    for (let end = text.indexOf('\n\n'); end !== -1; end = text.indexOf('\n\n')) {
      const [, event = '', data = ''] = /^event: (\w+)\ndata: (.*)$/.exec(text.slice(0, end)) ?? [];
      text = text.slice(end + 2);
      if (event !== 'beat') yield [event, JSON.parse(data) as JsonObject];
    }
  }
}

test('the lines of an activation that has ended come at once', async () => {
  await store(id(1), ['one', 'two']);
  const events = [];
  for await (const [event, { lines, status }] of eventsOf(id(1))) events.push([event, lines ?? status]);
  expect(events).toEqual([
    ['lines', ['one', 'two']],
    ['end', 200],
  ]);
});

test('lines come as the invoker tells them; what was lost is asked for again, and what is told twice comes once', async () => {
  await begin(id(2));
  const requests = await requestsFor(id(2));
  const events = eventsOf(id(2));
  const first = events.next();
  const { stream, namespace, from } = await requests.next();
  expect([namespace, from]).toEqual(['alice', 0]);
  await tell({ stream, run: 'invoker0/1', from: 0, lines: ['one', 'two'] });
  expect((await first).value).toMatchObject(['lines', { lines: ['one', 'two'] }]);
  await tell({ stream, run: 'invoker0/1', from: 3, lines: ['four'] });
  expect(await requests.next()).toMatchObject({ run: 'invoker0/1', from: 2 });
  await tell({ stream, run: 'invoker0/1', from: 1, lines: ['two', 'three', 'four'] });
  expect((await events.next()).value).toMatchObject(['lines', { lines: ['three', 'four'] }]);
  await tell({ stream, run: 'invoker1/1', from: 0, lines: ['one'] });
  expect((await events.next()).value).toMatchObject(['again', {}]);
  expect((await events.next()).value).toMatchObject(['lines', { lines: ['one'] }]);
  await store(id(2), ['one', 'two', 'five']);
  await tell({ stream, run: 'invoker1/1', from: 1, lines: [], total: 3 });
  expect((await events.next()).value).toMatchObject(['lines', { lines: ['two', 'five'] }]);
  expect((await events.next()).value).toMatchObject(['end', { status: 200 }]);
  expect((await events.next()).done).toBe(true);
});

test('an activation whose record is not kept ends its stream, and says what it did not bring', async () => {
  await begin(id(3));
  const requests = await requestsFor(id(3));
  const events = eventsOf(id(3));
  const first = events.next();
  const { stream } = await requests.next();
  await tell({ stream, run: 'invoker0/1', from: 0, lines: ['one'], total: 4 });
  expect((await first).value).toMatchObject(['lines', { lines: ['one'] }]);
  expect((await events.next()).value).toMatchObject(['dropped', { lines: 3 }]);
  expect((await events.next()).value).toMatchObject(['end', { status: 200 }]);
});

test('a reader that falls behind is told how many lines were dropped, and gets the last ones', async () => {
  await begin(id(4));
  const requests = await requestsFor(id(4));
  const events = eventsOf(id(4));
  const first = events.next();
  const { stream } = await requests.next();
  await tell({ stream, run: 'r', from: 0, lines: ['begin'] });
  await first;
  const block = Array.from({ length: 64 }, () => 'x'.repeat(1024));
  const blocks = 100;
  for (let at = 0; at < blocks; at++) {
    await tell({ stream, run: 'r', from: 1 + at * block.length, lines: block });
  }
  const total = 2 + blocks * block.length;
  await store(id(4), ['begin', ...Array.from({ length: blocks }, () => block).flat(), 'end']);
  await tell({ stream, run: 'r', from: total - 1, lines: ['end'], total });
  let [seen, last] = [1, ''];
  for await (const [event, { lines }] of events) {
    if (event === 'dropped') seen += Number(lines);
    if (!Array.isArray(lines)) continue;
    seen += lines.length;
    last = String(lines.at(-1));
  }
  expect([seen, last]).toEqual([total, 'end']);
});

test.each([
  ['an unknown activation', pathOf(id(77)), alice, 404],
  ["another namespace's", `/api/v1/namespaces/alice/activations/${id(1)}/logs?follow=true`, bob, 403],
  ['the id of another namespace in the own one', pathOf(id(1)), bob, 404],
  ['no key', pathOf(id(1)), null, 401],
  ['no boolean', pathOf(id(1)).replace('true', 'maybe'), alice, 400],
])('%s is refused', async (_, path, as, status) => {
  const reply = await api.request('GET', path, { as });
  expect(reply.status).toBe(status);
  expect(errorOf(reply)).not.toBe('');
});

test('a namespace has 20 streams at most', async () => {
  await begin(id(5));
  const stopping = new AbortController();
  const open = (): Promise<Response> =>
    fetch(api.url + pathOf(id(5)), { headers: { authorization: basic(alice) }, signal: stopping.signal });
  for (let at = 0; at < 20; at++) expect([at, (await open()).status]).toEqual([at, 200]);
  expect((await open()).status).toBe(429);
  stopping.abort();
});
