import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { overloaded, tooManyInFlight } from '@gpuwhisk/common/errors';
import { alice, bob, errorOf, startApi } from './harness.js';
import type { Api } from './harness.js';
import { TriggerCalls } from './trigger-calls.js';

let api: Api;
let calls: TriggerCalls;
beforeAll(async () => {
  api = await startApi();
  calls = new TriggerCalls(api);
});
afterAll(() => api.close());

const empty = { parameters: [], limits: {}, annotations: [], publish: false };

describe('the life of a trigger', () => {
  test('PUT creates one with defaults, GET shows it, DELETE answers with it', async () => {
    const made = await calls.trigger('PUT', 'plain', {});
    expect(made.status).toBe(200);
    const expected = { ...empty, namespace: 'alice', name: 'plain', version: '0.0.1', updated: expect.any(Number) };
    expect(made.json).toEqual(expected);
    expect((await calls.trigger('GET', 'plain')).json).toEqual(made.json);
    const deleted = await calls.trigger('DELETE', 'plain');
    expect([deleted.status, deleted.json]).toEqual([200, made.json]);
    const gone = await calls.trigger('GET', 'plain');
    expect([gone.status, errorOf(gone)]).toEqual([404, 'The requested resource does not exist.']);
    expect((await calls.trigger('DELETE', 'plain')).status).toBe(404);
  });

  test("its document is OpenWhisk's", async () => {
    await calls.trigger('PUT', 'stored', { parameters: [{ key: 'a', value: 1 }], limits: { odd: 1 }, publish: true });
    const document = await api.store.get('whisks', 'alice/stored');
    expect(document).toEqual({
      ...empty,
      _id: 'alice/stored',
      _rev: expect.any(String),
      entityType: 'trigger',
      namespace: 'alice',
      name: 'stored',
      version: '0.0.1',
      publish: true,
      parameters: [{ key: 'a', value: 1 }],
      updated: expect.any(Number),
    });
  });

  test('PUT of one that exists needs overwrite, keeps what it does not name, and replaces annotations', async () => {
    const parameters = [{ key: 'p', value: 'v' }];
    await calls.trigger('PUT', 'again', { parameters, annotations: [{ key: 'a', value: 1 }] });
    const refused = await calls.trigger('PUT', 'again', {});
    expect([refused.status, errorOf(refused)]).toEqual([409, 'resource already exists']);
    const kept = await calls.trigger('PUT', 'again?overwrite=true', {});
    expect(kept.json).toMatchObject({ parameters, annotations: [{ key: 'a', value: 1 }], version: '0.0.2' });
    const changed = await calls.trigger('PUT', 'again?overwrite=true', {
      annotations: [{ key: 'b', value: 2 }],
      version: '3.1.0',
    });
    expect(changed.json).toMatchObject({ parameters, annotations: [{ key: 'b', value: 2 }], version: '3.1.0' });
  });

  test('lists show neither parameters nor limits nor rules', async () => {
    await calls.trigger('PUT', 'listed', { parameters: [{ key: 'p', value: 1 }] });
    const { json } = await api.request('GET', '/api/v1/namespaces/_/triggers?limit=1');
    const common = { namespace: 'alice', name: 'listed', version: '0.0.1', publish: false, annotations: [] };
    expect(json).toEqual([{ ...common, updated: expect.any(Number) }]);
    const count = await api.request('GET', '/api/v1/namespaces/_/triggers?count=true');
    expect((count.json as { triggers: number }).triggers).toBeGreaterThan(0);
  });

  test.each(['GET', 'PUT', 'POST', 'DELETE'])('%s in another namespace is refused', async (method) => {
    const body = method === 'PUT' ? { body: {} } : {};
    const reply = await api.request(method, '/api/v1/namespaces/alice/triggers/x', { as: bob, ...body });
    expect([reply.status, errorOf(reply)]).toEqual([
      403,
      "The supplied authentication is not authorized to access 'alice/x'.",
    ]);
  });

  test('a name that another entity has is a conflict', async () => {
    await calls.link('r-name', 't-name', 'a-name');
    for (const method of ['GET', 'DELETE', 'POST']) {
      const reply = await calls.trigger(method, 'r-name');
      expect([reply.status, errorOf(reply)]).toEqual([
        409,
        'Resource by this name exists but is not in this collection.',
      ]);
    }
    expect((await calls.trigger('PUT', 'a-name?overwrite=true', {})).status).toBe(409);
  });

  test('a document that cannot be understood is reported so', async () => {
    await api.store.put('whisks', { _id: 'alice/odd', entityType: 'bad', namespace: 'alice', name: 'odd' });
    for (const [method, body] of [['GET'], ['DELETE'], ['POST'], ['PUT', {}]] as const) {
      const reply = await calls.trigger(method, 'odd', body);
      expect([method, reply.status, errorOf(reply)]).toEqual([
        method,
        500,
        'Resource is corrupted and cannot be read.',
      ]);
    }
  });
});

describe('what a PUT is refused for', () => {
  test.each([['xyz'], ['/alice/pkg/feed'], ['pkg/feed']])('feed %s is a name', async (feed) => {
    const annotations = [{ key: 'feed', value: feed }];
    expect((await calls.trigger('PUT', 'fed?overwrite=true', { annotations })).status).toBe(200);
    await calls.trigger('DELETE', 'fed');
  });

  test.each([[''], ['a,b'], ['/'], [1], [true]])('feed %p is not', async (feed) => {
    const reply = await calls.trigger('PUT', 'unfed', { annotations: [{ key: 'feed', value: feed }] });
    expect([reply.status, errorOf(reply)]).toEqual([400, 'Feed name is not valid']);
    expect((await calls.trigger('GET', 'unfed')).status).toBe(404);
  });

  test.each(['parameters', 'annotations'])('%s beyond the limit', async (field) => {
    const value = 'x'.repeat(1024 * 1024);
    const reply = await calls.trigger('PUT', 'large', { [field]: [{ key: 'key', value }] });
    expect([reply.status, errorOf(reply)]).toEqual([
      413,
      `${field} larger than allowed: 1048581 > 1048576 bytes. (setting: limits.maxParametersBytes)`,
    ]);
  });

  test.each([
    ['no body', undefined, 'Request entity expected but not supplied'],
    ['an array', [], 'The request content was malformed:\nJSON object expected'],
    ['bad parameters', { parameters: {} }, 'The request content was malformed:\nparameters malformed!'],
    ['a bad version', { version: 'x' }, 'The request content was malformed:\nsemantic version malformed'],
  ])('%s', async (_, body, text) => {
    const reply = await calls.trigger('PUT', 'bad', body);
    expect([reply.status, errorOf(reply)]).toEqual([400, text]);
  });
});

describe('a fire', () => {
  let ids = 0;
  beforeEach(() => {
    api.invocations.length = 0;
    api.onInvoke(() => ({ type: 'accepted', activationId: (ids++).toString(16).padStart(32, '0') }));
  });

  test('of a missing trigger is 404', async () => {
    const reply = await calls.trigger('POST', 'nowhere', {});
    expect([reply.status, errorOf(reply)]).toEqual([404, 'The requested resource does not exist.']);
  });

  test('without an active rule is 204, has no body and leaves no record', async () => {
    await calls.link('r-idle', 't-idle', 'a-idle');
    await calls.rule('POST', 'r-idle', { status: 'inactive' });
    await calls.trigger('PUT', 't-bare', {});
    for (const name of ['t-idle', 't-bare']) {
      const reply = await calls.trigger('POST', name, {});
      expect([reply.status, reply.text]).toEqual([204, '']);
      expect(reply.headers).not.toHaveProperty('content-length');
      expect(reply.headers).not.toHaveProperty('x-openwhisk-activation-id');
      const { json } = await api.request('GET', `/api/v1/namespaces/_/activations?name=${name}`);
      expect(json).toEqual([]);
    }
    expect(api.invocations).toEqual([]);
  });

  test('posts the actions of all active rules as the firing user and records what came of each', async () => {
    await calls.link('r1', 't', 'a1');
    await calls.link('r2', 't', 'a2');
    await calls.link('r3', 't', 'a3');
    await calls.rule('POST', 'r2', { status: 'inactive' });
    const record = await calls.fired('t', { x: 1 }, { headers: { 'x-request-id': 'mine' } });
    expect(api.invocations).toHaveLength(2);
    for (const [index, name] of ['a1', 'a3'].entries()) {
      expect(api.invocations[index]).toMatchObject({
        identity: { subject: alice.subject },
        action: { namespace: 'alice', name },
        payload: { x: 1 },
        blocking: false,
        transactionId: 'mine',
      });
      expect(api.invocations[index]).not.toHaveProperty('cause');
    }
    const activationId = expect.stringMatching(/^[0-9a-f]{32}$/);
    expect(record).toEqual({
      namespace: 'alice',
      name: 't',
      version: '0.0.3',
      subject: alice.subject,
      activationId,
      start: expect.any(Number),
      response: { status: 'success', success: true, result: { x: 1 } },
      logs: [expect.any(String), expect.any(String), expect.any(String)],
      publish: false,
      annotations: [],
    });
    expect(record.logs.map((line) => JSON.parse(line) as unknown)).toEqual([
      { statusCode: 0, success: true, activationId, rule: 'alice/r1', action: 'alice/a1' },
      {
        statusCode: 1,
        success: false,
        error: "Rule 'alice/r2' is inactive, action 'alice/a2' was not activated.",
        rule: 'alice/r2',
        action: 'alice/a2',
      },
      { statusCode: 0, success: true, activationId, rule: 'alice/r3', action: 'alice/a3' },
    ]);
  });

  test('is answered with the id in body and header', async () => {
    await calls.link('r-id', 't-id', 'a-id');
    const reply = await calls.trigger('POST', 't-id');
    expect(reply.status).toBe(202);
    const { activationId } = reply.json as { activationId: string };
    expect(reply.headers['x-openwhisk-activation-id']).toBe(activationId);
    expect(reply.json).toEqual({ activationId });
  });

  test('gives actions the parameters of the trigger, then the headers, then the payload', async () => {
    await calls.link('r-arg', 't-arg', 'a-arg');
    const parameters = [
      { key: 'a', value: 1 },
      { key: 'b', value: 2 },
    ];
    await calls.trigger('PUT', 't-arg?overwrite=true', { parameters });
    const record = await calls.fired('t-arg', { b: 3 }, { headers: { Foo: 'Bar' } });
    expect(api.invocations[0]?.payload).toMatchObject({ a: 1, b: 3, __ow_headers: { foo: 'Bar' } });
    const { __ow_headers: headers } = api.invocations[0]?.payload as { __ow_headers: object };
    expect(headers).not.toHaveProperty('content-type');
    expect(record.response).toMatchObject({ result: { b: 3 } });
    await calls.fired('t-arg', { __ow_headers: 'mine' });
    expect(api.invocations[1]?.payload).toEqual({ a: 1, b: 2, __ow_headers: 'mine' });
  });

  test('without a payload has the result {}', async () => {
    await calls.link('r-none', 't-none', 'a-none');
    expect((await calls.fired('t-none')).response).toEqual({ status: 'success', success: true, result: {} });
  });

  test('shows the key to actions of the own namespace only', async () => {
    const shared = '/api/v1/namespaces/_/packages/shared';
    await api.request('PUT', shared, { as: bob, body: { publish: true } });
    const action = { exec: { kind: 'nodejs:20', code: 'x' } };
    await api.request('PUT', '/api/v1/namespaces/_/actions/shared/a', { as: bob, body: action });
    await calls.link('r-own', 't-key', 'a-own');
    expect((await calls.rule('PUT', 'r-bob', { trigger: '/_/t-key', action: '/bob/shared/a' })).status).toBe(200);
    await calls.fired('t-key');
    const headers = api.invocations.map(({ action: { namespace }, payload }) => [
      namespace,
      Object.keys((payload as { __ow_headers: object }).__ow_headers).includes('authorization'),
    ]);
    expect(headers).toEqual([
      ['alice', true],
      ['bob/shared', false],
    ]);
  });

  test.each<[string, () => Promise<unknown>, number, string]>([
    [
      'a deleted action',
      () => api.request('DELETE', '/api/v1/namespaces/_/actions/a-fail'),
      1,
      'The requested resource does not exist.',
    ],
    [
      'arguments that collide with final parameters',
      () =>
        api.request('PUT', '/api/v1/namespaces/_/actions/a-fail?overwrite=true', {
          body: { parameters: [{ key: 'x', value: 1 }], annotations: [{ key: 'final', value: true }] },
        }),
      1,
      'Request defines parameters that are not allowed (e.g., reserved properties).',
    ],
    [
      'arguments that are too large together',
      () =>
        calls.trigger('PUT', 't-fail?overwrite=true', {
          parameters: [{ key: 'p', value: 'x'.repeat(1024 * 1024 - 100) }],
        }),
      1,
      expect.stringMatching(
        /^Request larger than allowed: \d+ > 1048576 bytes\. \(setting: limits\.maxPayloadBytes\)$/,
      ) as unknown as string,
    ],
  ])('%s is a failure of its rule alone', async (_, prepare, statusCode, error) => {
    await calls.link('r-fail', 't-fail', 'a-fail');
    try {
      await prepare();
      const record = await calls.fired('t-fail', { x: 1 });
      expect(record.response).toMatchObject({ success: true });
      expect(record.logs.map((line) => JSON.parse(line) as unknown)).toEqual([
        { statusCode, success: false, error, rule: 'alice/r-fail', action: 'alice/a-fail' },
      ]);
    } finally {
      await calls.rule('DELETE', 'r-fail');
      await calls.trigger('DELETE', 't-fail');
      await api.request('DELETE', '/api/v1/namespaces/_/actions/a-fail');
    }
  });

  test.each([
    [429, 1, 'Too many concurrent requests in flight (count: 7, allowed: 7).'],
    [503, 3, 'The server is currently unavailable (because it is overloaded or down for maintenance).'],
    [500, 3, 'There was an internal server error.'],
  ])('an invoker that answers %i makes a failure with status code %i', async (status, statusCode, error) => {
    const thrown: Record<number, Error> = { 429: tooManyInFlight(7, 7), 503: overloaded(), 500: new Error('a bug') };
    await calls.link(`r-${status}`, `t-${status}`, `a-${status}`);
    api.onInvoke(() => Promise.reject(thrown[status] as Error));
    const record = await calls.fired(`t-${status}`);
    const [line = ''] = record.logs;
    expect(JSON.parse(line)).toMatchObject({ statusCode, success: false, error });
  });

  test('the 202 waits for the activations of the rules', async () => {
    await calls.link('r-wait', 't-wait', 'a-wait');
    let accept = (): void => undefined;
    const posted = new Promise<void>((started) => {
      api.onInvoke(() => {
        started();
        return new Promise((resolve) => {
          accept = () => resolve({ type: 'accepted', activationId: 'f'.repeat(32) });
        });
      });
    });
    let answered = false;
    const fired = calls.trigger('POST', 't-wait').then((reply) => {
      answered = true;
      return reply;
    });
    await posted;
    await calls.trigger('GET', 't-wait');
    expect(answered).toBe(false);
    accept();
    expect((await fired).status).toBe(202);
  });

  test.each([
    ['an array', [], 400],
    ['no JSON', '{', 400],
    ['too much', { x: 'x'.repeat(1024 * 1024) }, 413],
  ])('%s as payload is refused', async (_, body, status) => {
    await calls.trigger('PUT', 't-body?overwrite=true', {});
    expect((await calls.trigger('POST', 't-body', body)).status).toBe(status);
  });

  test('an update of the trigger leaves its rules', async () => {
    await calls.link('r-stay', 't-stay', 'a-stay');
    const { json } = await calls.trigger('PUT', 't-stay?overwrite=true', {});
    const action = { path: 'alice', name: 'a-stay' };
    expect(json).toMatchObject({ rules: { 'alice/r-stay': { action, status: 'active' } } });
    await calls.fired('t-stay');
    expect(api.invocations).toHaveLength(1);
  });
});

describe('throttles', () => {
  const startThrottled = async (limits: Record<string, number>): Promise<[Api, TriggerCalls]> => {
    const throttled = await startApi({ limits });
    return [throttled, new TriggerCalls(throttled)];
  };

  test('fires beyond those allowed a minute are refused before anything is looked up', async () => {
    const [throttled, own] = await startThrottled({ firesPerMinute: 0 });
    try {
      const reply = await own.trigger('POST', 'nowhere', {});
      expect([reply.status, errorOf(reply)]).toEqual([
        429,
        'Too many requests in the last minute (count: 1, allowed: 0). (setting: limits.firesPerMinute)',
      ]);
    } finally {
      await throttled.close();
    }
  });

  test("each rule's action counts as an invocation, and what is refused is a line of the record", async () => {
    const [throttled, own] = await startThrottled({ invocationsPerMinute: 0 });
    try {
      await own.link('r', 't', 'a');
      const [line = ''] = (await own.fired('t')).logs;
      expect(JSON.parse(line)).toEqual({
        statusCode: 1,
        success: false,
        error: 'Too many requests in the last minute (count: 1, allowed: 0). (setting: limits.invocationsPerMinute)',
        rule: 'alice/r',
        action: 'alice/a',
      });
    } finally {
      await throttled.close();
    }
  });
});
