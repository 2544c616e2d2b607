import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { DocumentConflictError, StoreWriteError } from '@gpuwhisk/common/store/artifact-store';
import type { ArtifactStore, StoredDocument } from '@gpuwhisk/common/store/artifact-store';
import { actionPath, bob, errorOf, hello, startApi } from './harness.js';
import type { Api, Reply } from './harness.js';
import { TriggerCalls } from './trigger-calls.js';

/** The error that a write of a document fails with, or undefined if the write succeeds. */
let failing: (document: StoredDocument) => Error | undefined = () => undefined;

function withFailures(store: ArtifactStore): ArtifactStore {
  return new Proxy(store, {
    get(target, property) {
      if (property === 'put') {
        return async (...[database, document]: Parameters<ArtifactStore['put']>) => {
          const failure = failing(document);
          if (failure !== undefined) throw failure;
          return target.put(database, document);
        };
      }
      const value = Reflect.get(target, property) as unknown;
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

let api: Api;
let calls: TriggerCalls;
beforeAll(async () => {
  api = await startApi({ wrapStore: withFailures });
  calls = new TriggerCalls(api);
  for (const name of ['t', 't2']) await calls.trigger('PUT', name, {});
  for (const name of ['a', 'a2']) await api.request('PUT', actionPath(name), { body: hello });
});
afterAll(() => api.close());

const targets = { trigger: '/_/t', action: '/_/a' };
const names = (name: string): object => ({ path: 'alice', name });

async function linksOf(trigger: string): Promise<Record<string, { action: object; status: string }>> {
  const { json } = await calls.trigger('GET', trigger);
  return (json as { rules?: Record<string, { action: object; status: string }> }).rules ?? {};
}

function refusal(reply: Reply): [number, string] {
  return [reply.status, errorOf(reply)];
}

describe('the life of a rule', () => {
  test('PUT creates it active, GET shows it, its trigger knows it, DELETE takes it from there', async () => {
    const made = await calls.rule('PUT', 'life', { ...targets, annotations: [{ key: 'a', value: 1 }] });
    expect([made.status, made.json]).toEqual([
      200,
      {
        namespace: 'alice',
        name: 'life',
        status: 'active',
        trigger: names('t'),
        action: names('a'),
        version: '0.0.1',
        publish: false,
        annotations: [{ key: 'a', value: 1 }],
        updated: expect.any(Number),
      },
    ]);
    expect((await calls.rule('GET', 'life')).json).toEqual(made.json);
    expect(await linksOf('t')).toEqual({ 'alice/life': { action: names('a'), status: 'active' } });
    const deleted = await calls.rule('DELETE', 'life');
    expect([deleted.status, deleted.json]).toEqual([200, { ...(made.json as object), status: 'inactive' }]);
    expect(await linksOf('t')).toEqual({});
    expect((await calls.trigger('GET', 't')).json).toMatchObject({ version: '0.0.1', rules: {} });
    for (const method of ['GET', 'DELETE']) {
      expect(refusal(await calls.rule(method, 'life'))).toEqual([404, 'The requested resource does not exist.']);
    }
  });

  test("its document is OpenWhisk's", async () => {
    await calls.rule('PUT', 'stored', targets);
    expect(await api.store.get('whisks', 'alice/stored')).toEqual({
      _id: 'alice/stored',
      _rev: expect.any(String),
      entityType: 'rule',
      namespace: 'alice',
      name: 'stored',
      trigger: names('t'),
      action: names('a'),
      version: '0.0.1',
      publish: false,
      annotations: [],
      updated: expect.any(Number),
    });
    await calls.rule('DELETE', 'stored');
  });

  test('lists have whole rules without their status', async () => {
    const made = await calls.rule('PUT', 'listed', targets);
    const whole: Record<string, unknown> = { ...(made.json as object) };
    delete whole.status;
    expect((await api.request('GET', '/api/v1/namespaces/_/rules')).json).toEqual([whole]);
    expect((await api.request('GET', '/api/v1/namespaces/_/rules/?count=true')).json).toEqual({ rules: 1 });
    await calls.rule('DELETE', 'listed');
  });

  test('targets may be named in parts, without a slash in front, and by the namespace', async () => {
    const forms = [
      { trigger: { path: '_', name: 't' }, action: { path: 'alice', name: 'a' } },
      { trigger: 'alice/t', action: '_/a' },
      { trigger: '/alice/t', action: '/_/a/' },
    ];
    for (const form of forms) {
      const made = await calls.rule('PUT', 'forms?overwrite=true', form);
      expect(made.json).toMatchObject({ trigger: names('t'), action: names('a') });
    }
    await calls.rule('DELETE', 'forms');
  });

  test('an action may lie in a package, and be reached through a binding', async () => {
    const own = '/api/v1/namespaces/_';
    await api.request('PUT', `${own}/packages/p`, { body: {} });
    await api.request('PUT', `${own}/packages/b`, { body: { binding: { namespace: '_', name: 'p' } } });
    await api.request('PUT', `${own}/actions/p/inside`, { body: hello });
    for (const path of ['p', 'b']) {
      const made = await calls.rule('PUT', 'packaged?overwrite=true', { ...targets, action: `/_/${path}/inside` });
      expect([made.status, made.json]).toMatchObject([200, { action: { path: `alice/${path}`, name: 'inside' } }]);
      expect((await linksOf('t'))['alice/packaged']?.action).toEqual({ path: `alice/${path}`, name: 'inside' });
    }
    await calls.rule('DELETE', 'packaged');
  });

  test('whose trigger has as many as it can is refused, and leaves nothing', async () => {
    await api.request('PUT', '/api/v1/namespaces/_/triggers/full', { body: {} });
    const stored = await api.store.get('whisks', 'alice/full');
    const link = { action: { path: 'alice', name: 'a'.repeat(100) }, status: 'inactive' };
    const rules = Object.fromEntries(Array.from({ length: 8000 }, (_, at) => [`alice/rule${at}`, link]));
    await api.store.put('whisks', { ...stored, rules });
    const refused = await calls.rule('PUT', 'more', { ...targets, trigger: '/_/full' });
    expect(refusal(refused)).toEqual([
      413,
      expect.stringMatching(/^Rules of the trigger larger than allowed: \d{7} > 1048576/),
    ]);
    expect((await calls.rule('GET', 'more')).status).toBe(404);
  });

  test.each(['GET', 'PUT', 'POST', 'DELETE'])('%s in another namespace is refused', async (method) => {
    const body = method === 'PUT' || method === 'POST' ? { body: {} } : {};
    const reply = await api.request(method, '/api/v1/namespaces/alice/rules/x', { as: bob, ...body });
    expect(refusal(reply)).toEqual([403, "The supplied authentication is not authorized to access 'alice/x'."]);
  });

  test('rules of old OpenWhisk name their targets plainly and can be enabled', async () => {
    const old = { namespace: 'alice', name: 'old', trigger: 't', action: 'a', status: 'active' };
    const rest = { version: '0.0.1', publish: false, annotations: [], updated: 1 };
    await api.store.put('whisks', { _id: 'alice/old', ...old, ...rest });
    const found = await calls.rule('GET', 'old');
    expect(found.json).toMatchObject({ trigger: names('t'), action: names('a'), status: 'inactive' });
    expect((await calls.rule('POST', 'old', { status: 'active' })).status).toBe(200);
    expect(await linksOf('t')).toEqual({ 'alice/old': { action: names('a'), status: 'active' } });
    await calls.rule('DELETE', 'old');
  });
});

describe('an update', () => {
  test('needs overwrite', async () => {
    await calls.rule('PUT', 'once', targets);
    expect(refusal(await calls.rule('PUT', 'once', targets))).toEqual([409, 'resource already exists']);
    await calls.rule('DELETE', 'once');
  });

  test.each([
    ['nothing', {}, 't', 'a'],
    ['the action', { action: '/_/a2' }, 't', 'a2'],
    ['the trigger', { trigger: '/_/t2' }, 't2', 'a'],
    ['both', { trigger: '/_/t2', action: '/_/a2' }, 't2', 'a2'],
  ])('of %s moves the link and keeps the status', async (_, change, trigger, action) => {
    for (const status of ['active', 'inactive']) {
      await calls.rule('PUT', 'moving', { ...targets, annotations: [{ key: 'k', value: 1 }] });
      await calls.rule('POST', 'moving', { status });
      const changed = await calls.rule('PUT', 'moving?overwrite=true', change);
      const expected = { trigger: names(trigger), action: names(action), status, version: '0.0.2' };
      expect([changed.status, changed.json]).toMatchObject([200, { ...expected, annotations: [{ key: 'k' }] }]);
      const links = { t: await linksOf('t'), t2: await linksOf('t2') };
      expect(links).toEqual({ t: {}, t2: {}, [trigger]: { 'alice/moving': { action: names(action), status } } });
      await calls.rule('DELETE', 'moving');
    }
  });

  test('of a rule whose trigger is gone needs a new one', async () => {
    await calls.link('stray', 'short', 'a');
    await calls.trigger('DELETE', 'short');
    expect((await calls.rule('GET', 'stray')).json).toMatchObject({ status: 'inactive' });
    const refused = await calls.rule('PUT', 'stray?overwrite=true', { action: '/_/a2' });
    expect(refusal(refused)).toEqual([400, 'trigger /alice/short does not exist']);
    const moved = await calls.rule('PUT', 'stray?overwrite=true', { trigger: '/_/t' });
    expect(moved.json).toMatchObject({ status: 'inactive', trigger: names('t') });
    expect((await calls.rule('DELETE', 'stray')).status).toBe(200);
  });
});

describe('what a PUT is refused for', () => {
  const malformed = 'The request content was malformed:\n';
  const short = `${malformed}requirement failed: The fully qualified name of the entity must contain at least the namespace and the name of the entity.`;
  test.each<[string, unknown, number, string]>([
    ['no body', undefined, 400, 'Request entity expected but not supplied'],
    ['no targets', {}, 400, 'rule requires a valid trigger and a valid action'],
    ['no action', { trigger: '/_/t' }, 400, 'rule requires a valid trigger and a valid action'],
    ['no trigger', { action: '/_/a' }, 400, 'rule requires a valid trigger and a valid action'],
    ['a missing trigger', { ...targets, trigger: '/_/none' }, 400, 'trigger /alice/none does not exist'],
    ['a missing action', { ...targets, action: '/_/none' }, 400, 'action /alice/none does not exist'],
    ['a missing package', { ...targets, action: '/_/p0/none' }, 400, 'action /alice/p0/none does not exist'],
    ['neither there', { trigger: '/_/none', action: '/_/none' }, 400, 'trigger /alice/none does not exist'],
    ['a trigger without namespace', { ...targets, trigger: 't' }, 400, short],
    ['an action without namespace', { ...targets, action: 'a' }, 400, short],
    ['a number as trigger', { ...targets, trigger: 1 }, 400, `${malformed}fully qualified name malformed`],
    ['half an action', { ...targets, action: { name: 'a' } }, 400, `${malformed}fully qualified name malformed`],
    [
      'an action of others',
      { ...targets, action: '/bob/a' },
      403,
      "The supplied authentication is not authorized to access 'bob/a'.",
    ],
    [
      'both of others',
      { trigger: '/bob/t', action: '/bob/a' },
      403,
      "The supplied authentication is not authorized to access 'bob/a, bob/t'.",
    ],
    [
      'an action in place of the trigger',
      { ...targets, trigger: '/_/a' },
      400,
      'Resource by this name exists but is not in this collection.',
    ],
    [
      'large annotations',
      { ...targets, annotations: [{ key: 'key', value: 'x'.repeat(1024 * 1024) }] },
      413,
      'annotations larger than allowed: 1048581 > 1048576 bytes. (setting: limits.maxParametersBytes)',
    ],
  ])('%s', async (_, body, status, text) => {
    expect(refusal(await calls.rule('PUT', 'refused', body))).toEqual([status, text]);
    expect((await calls.rule('GET', 'refused')).status).toBe(404);
    expect(await linksOf('t')).toEqual({});
  });

  test('a name that a trigger has', async () => {
    const text = 'Resource by this name exists but is not in this collection.';
    expect(refusal(await calls.rule('PUT', 't?overwrite=true', targets))).toEqual([409, text]);
    expect(refusal(await calls.rule('GET', 't'))).toEqual([409, text]);
  });

  test('targets that cannot be understood', async () => {
    await api.store.put('whisks', { _id: 'alice/odd', entityType: 'bad', namespace: 'alice', name: 'odd' });
    const text = 'Resource is corrupted and cannot be read.';
    expect(refusal(await calls.rule('PUT', 'r', { ...targets, trigger: '/_/odd' }))).toEqual([400, text]);
    for (const [method, body] of [['GET'], ['DELETE'], ['PUT', {}], ['POST', { status: 'active' }]] as const) {
      expect(refusal(await calls.rule(method, 'odd', body))).toEqual([500, text]);
    }
  });
});

describe('the state', () => {
  test('is set in the trigger alone, as often as asked', async () => {
    const made = await calls.rule('PUT', 'state', targets);
    for (const status of ['inactive', 'inactive', 'active', 'active', 'inactive']) {
      const reply = await calls.rule('POST', 'state', { status });
      expect([reply.status, reply.text]).toEqual([200, '']);
      expect((await calls.rule('GET', 'state')).json).toEqual({ ...(made.json as object), status });
      expect((await linksOf('t'))['alice/state']?.status).toBe(status);
    }
    await calls.rule('DELETE', 'state');
  });

  test('cannot become active without the trigger, and comes back with it', async () => {
    await calls.link('lost', 'short', 'a');
    await calls.trigger('DELETE', 'short');
    const text = 'Only rules with existing triggers can be activated';
    expect(refusal(await calls.rule('POST', 'lost', { status: 'active' }))).toEqual([404, text]);
    expect((await calls.rule('POST', 'lost', { status: 'inactive' })).status).toBe(200);
    await calls.trigger('PUT', 'short', {});
    expect((await calls.rule('GET', 'lost')).json).toMatchObject({ status: 'inactive' });
    expect((await calls.rule('POST', 'lost', { status: 'active' })).status).toBe(200);
    expect((await calls.rule('GET', 'lost')).json).toMatchObject({ status: 'active' });
    await calls.trigger('DELETE', 'short');
    expect((await calls.rule('DELETE', 'lost')).status).toBe(200);
  });

  test('of a missing rule is 404', async () => {
    expect((await calls.rule('POST', 'none', { status: 'active' })).status).toBe(404);
  });

  const malformed = 'The request content was malformed:\n';
  test.each([
    ['no body', undefined, 'Request entity expected but not supplied'],
    ['no status', {}, `${malformed}key not found: status`],
    ['an unknown one', { status: 'xxx' }, `${malformed}requirement failed: xxx is not a recognized rule state`],
    ['a number', { status: 1 }, `${malformed}rule state malformed`],
  ])('%s is refused', async (_, body, text) => {
    expect(refusal(await calls.rule('POST', 'any', body))).toEqual([400, text]);
  });
});

describe('many at once', () => {
  test('rules of one trigger do not lose each other', async () => {
    const rules = Array.from({ length: 40 }, (_, index) => `many${index}`);
    const made = await Promise.all(rules.map((rule) => calls.rule('PUT', rule, targets)));
    expect(made.map(({ status }) => status)).toEqual(rules.map(() => 200));
    expect(Object.keys(await linksOf('t')).sort()).toEqual(rules.map((rule) => `alice/${rule}`).sort());
    const changes = [
      ...rules.slice(0, 20).map((rule) => calls.rule('POST', rule, { status: 'inactive' })),
      ...rules.slice(20).map((rule) => calls.rule('DELETE', rule)),
      calls.trigger('PUT', 't?overwrite=true', { parameters: [{ key: 'k', value: 1 }] }),
    ];
    expect((await Promise.all(changes)).every(({ status }) => status === 200)).toBe(true);
    const links = await linksOf('t');
    expect(Object.keys(links)).toHaveLength(20);
    expect(new Set(Object.values(links).map(({ status }) => status))).toEqual(new Set(['inactive']));
    await Promise.all(rules.slice(0, 20).map((rule) => calls.rule('DELETE', rule)));
  });

  test('one name is made once', async () => {
    const made = await Promise.all(Array.from({ length: 5 }, () => calls.rule('PUT', 'same', targets)));
    expect(made.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409, 409]);
    await calls.rule('DELETE', 'same');
  });

  test('another controller that writes the trigger at the same time costs a further try', async () => {
    let conflicts = 3;
    failing = ({ _id }) => (_id === 'alice/t' && conflicts-- > 0 ? new DocumentConflictError(_id) : undefined);
    expect((await calls.rule('PUT', 'contended', targets)).status).toBe(200);
    expect(Object.keys(await linksOf('t'))).toEqual(['alice/contended']);
    await calls.rule('DELETE', 'contended');
  });
});

describe('a write that fails half-way is undone', () => {
  const failTrigger = (name: string, error: (id: string) => Error): void => {
    failing = ({ _id }) => (_id === `alice/${name}` ? error(_id) : undefined);
  };
  const conflict = (id: string): Error => new DocumentConflictError(id);

  test.each<[string, (id: string) => Error, number, string]>([
    ['is always changed by others', conflict, 409, 'Concurrent modification to resource detected.'],
    ['cannot be stored', () => new StoreWriteError('disk full'), 500, 'There was an internal server error.'],
  ])('a new rule whose trigger %s', async (_, error, status, text) => {
    failTrigger('t', error);
    const refused = await calls.rule('PUT', 'half', targets);
    failing = () => undefined;
    expect(refusal(refused)).toEqual([status, text]);
    expect((await calls.rule('GET', 'half')).status).toBe(404);
    expect(await linksOf('t')).toEqual({});
  });

  test('a rule that moves to a trigger that cannot take it', async () => {
    const made = await calls.rule('PUT', 'half', targets);
    failTrigger('t2', conflict);
    const refused = await calls.rule('PUT', 'half?overwrite=true', { trigger: '/_/t2' });
    failing = () => undefined;
    expect(refused.status).toBe(409);
    expect((await calls.rule('GET', 'half')).json).toEqual(made.json);
    expect(await linksOf('t')).toEqual({ 'alice/half': { action: names('a'), status: 'active' } });
    expect(await linksOf('t2')).toEqual({});
  });

  test('a rule whose own document another controller changes', async () => {
    failTrigger('half', conflict);
    const refused = await calls.rule('PUT', 'half?overwrite=true', { trigger: '/_/t2' });
    failing = () => undefined;
    expect(refusal(refused)).toEqual([409, 'Concurrent modification to resource detected.']);
    expect(await linksOf('t')).toEqual({ 'alice/half': { action: names('a'), status: 'active' } });
    expect(await linksOf('t2')).toEqual({});
    await calls.rule('DELETE', 'half');
  });
});
