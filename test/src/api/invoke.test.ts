import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { ActivationResponse, WhiskActivation } from '@gpuwhisk/common/entities/activation';
import { overloaded, tooManyInFlight } from '@gpuwhisk/common/errors';
import { actionPath, alice, errorOf, hello, startApi } from './harness.js';
import type { Api } from './harness.js';

const activationId = '0123456789abcdef0123456789abcdef';
const header = 'x-openwhisk-activation-id';

function record(response: ActivationResponse): WhiskActivation {
  return {
    namespace: 'alice',
    name: 'hello',
    version: '0.0.1',
    subject: alice.subject,
    activationId,
    start: 1000,
    end: 1010,
    duration: 10,
    response,
    logs: [],
    publish: false,
    annotations: [{ key: 'path', value: 'alice/hello' }],
  };
}

let api: Api;
beforeAll(async () => {
  api = await startApi();
  await api.request('PUT', actionPath('hello'), { body: hello });
});
afterAll(() => api.close());
beforeEach(() => {
  api.invocations.length = 0;
  api.onInvoke(() => ({ type: 'accepted', activationId }));
});

function completes(response: ActivationResponse): void {
  api.onInvoke(() => ({ type: 'completed', activation: record(response) }));
}

describe('the request', () => {
  test('reaches the invoker whole', async () => {
    await api.request('POST', actionPath('hello'), { body: { a: [1] }, headers: { 'x-request-id': 'mine' } });
    expect(api.invocations).toMatchObject([
      {
        identity: { subject: alice.subject, namespace: { name: 'alice' } },
        action: { namespace: 'alice', name: 'hello', version: '0.0.1', exec: { kind: 'nodejs:20', code: '' } },
        payload: { a: [1] },
        blocking: false,
        waitMs: 60_000,
        transactionId: 'mine',
      },
    ]);
    expect(api.invocations[0]?.action.revision).not.toBe('');
  });

  test('an empty body is no arguments', async () => {
    await api.request('POST', actionPath('hello'));
    expect(api.invocations[0]?.payload).toEqual({});
  });

  test.each([
    ['?blocking=true', true, 60_000],
    ['?blocking=TRUE&timeout=1', true, 1],
    ['?blocking=no&timeout=60000', false, 60_000],
    ['?blocking=1&result=1', true, 60_000],
  ])('%s', async (query, blocking, waitMs) => {
    await api.request('POST', actionPath('hello') + query);
    expect(api.invocations).toMatchObject([{ blocking, waitMs }]);
  });

  test.each(['0', '60001', '-1', 'x', '', '1.5'])('timeout=%s is refused', async (timeout) => {
    const reply = await api.request('POST', `${actionPath('hello')}?timeout=${timeout}`);
    expect([reply.status, errorOf(reply)]).toEqual([
      400,
      "The query parameter 'timeout' was malformed:\nTimeout must be number of milliseconds up to 60000.",
    ]);
    expect(api.invocations).toEqual([]);
  });

  test('sees an update at once', async () => {
    await api.request('PUT', actionPath('changing'), { body: hello });
    for (const version of ['0.0.2', '0.0.3']) {
      await api.request('PUT', `${actionPath('changing')}?overwrite=true`, { body: {} });
      await api.request('POST', actionPath('changing'));
      expect(api.invocations.at(-1)?.action.version).toBe(version);
    }
  });

  test('of an action that is not remembered reads it', async () => {
    await api.request('PUT', actionPath('cold'), { body: hello });
    api.controller.actions.drop('alice', 'cold');
    await api.request('POST', actionPath('cold'));
    expect(api.invocations).toHaveLength(1);
    expect(api.controller.actions.cached('alice', 'cold')).toBe(api.invocations[0]?.action);
  });

  test('may not override final parameters', async () => {
    const annotations = [{ key: 'final', value: true }];
    const parameters = [
      { key: 'fixed', value: 1 },
      { key: 'open', value: null },
    ];
    await api.request('PUT', actionPath('final'), { body: { ...hello, annotations, parameters } });
    const refused = await api.request('POST', actionPath('final'), { body: { fixed: 2 } });
    expect([refused.status, errorOf(refused)]).toEqual([
      400,
      'Request defines parameters that are not allowed (e.g., reserved properties).',
    ]);
    expect((await api.request('POST', actionPath('final'), { body: { open: 2, toString: 1 } })).status).toBe(202);
  });
});

describe('the answer', () => {
  test('accepted', async () => {
    const reply = await api.request('POST', actionPath('hello'));
    expect([reply.status, reply.json, reply.headers[header]]).toEqual([202, { activationId }, activationId]);
    expect(reply.headers['content-type']).toBe('application/json');
    expect(reply.headers['access-control-allow-origin']).toBe('*');
  });

  test.each([
    [0, 200, 'success', { ok: 1 }],
    [1, 502, 'application error', { error: 'mine' }],
    [2, 502, 'action developer error', { error: 'crash' }],
    [3, 500, 'whisk internal error', { error: 'ours' }],
  ] as const)('status %d', async (statusCode, httpStatus, status, result) => {
    completes({ statusCode, result, size: 7 });
    const whole = await api.request('POST', `${actionPath('hello')}?blocking=true`);
    expect(whole.status).toBe(httpStatus);
    expect(whole.headers[header]).toBe(activationId);
    const { response, ...rest } = record({ statusCode });
    expect(response).toEqual({ statusCode });
    expect(whole.json).toEqual({ ...rest, response: { status, success: statusCode === 0, result, size: 7 } });
    const bare = await api.request('POST', `${actionPath('hello')}?blocking=true&result=true`);
    expect([bare.status, bare.json, bare.headers[header]]).toEqual([httpStatus, result, activationId]);
  });

  test('an array is bare, whatever was asked for', async () => {
    completes({ statusCode: 0, result: [1, 2] });
    for (const query of ['?blocking=true', '?blocking=true&result=true']) {
      expect((await api.request('POST', actionPath('hello') + query)).json).toEqual([1, 2]);
    }
  });

  test('no result is an empty object', async () => {
    completes({ statusCode: 0 });
    expect((await api.request('POST', `${actionPath('hello')}?blocking=true&result=true`)).json).toEqual({});
  });

  test('a full queue is 429, no invoker 503, anything else 500', async () => {
    const cases: [Error, number, string][] = [
      [tooManyInFlight(10, 9), 429, 'Too many concurrent requests in flight (count: 10, allowed: 9).'],
      [overloaded(), 503, 'The server is currently unavailable (because it is overloaded or down for maintenance).'],
      [new Error('secret'), 500, 'There was an internal server error.'],
    ];
    for (const [error, status, text] of cases) {
      api.onInvoke(() => {
        throw error;
      });
      const reply = await api.request('POST', actionPath('hello'));
      expect([reply.status, errorOf(reply)]).toEqual([status, text]);
    }
  });

  test('to a client that left before it is dropped', async () => {
    let finish: (() => void) | undefined;
    api.onInvoke(
      () =>
        new Promise((resolve) => {
          finish = () => resolve({ type: 'accepted', activationId });
        }),
    );
    const gone = new AbortController();
    const left = fetch(`${api.url}${actionPath('hello')}`, {
      method: 'POST',
      signal: gone.signal,
      headers: { authorization: `Basic ${Buffer.from(`${alice.uuid}:${alice.key}`).toString('base64')}` },
    }).catch((error: Error) => error.name);
    while (finish === undefined) await new Promise((resolve) => setTimeout(resolve, 5));
    gone.abort();
    expect(await left).toBe('AbortError');
    await new Promise((resolve) => setTimeout(resolve, 20));
    finish();
    expect((await api.request('GET', '/ping')).status).toBe(200);
  });
});
