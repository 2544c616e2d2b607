import { describe, expect, test } from '@jest/globals';
import type { StoredDocument } from '../store/artifact-store.js';
import { simulatedStore } from '../testing/simulated-store.js';
import { systemClock } from '../system/clock.js';
import { seededRandom } from '../system/random.js';
import { actionDocument, actionToApi, readAction, readActionCode, withCode, withoutCode } from './action.js';
import { activationDocument, activationResult, activationToApi, readActivation } from './activation.js';
import { readUserLimits } from './identity.js';
import { EntityTypeError } from './names.js';

/** Documents as an OpenWhisk of 2024 writes them. */
const action: StoredDocument = {
  _id: 'guest/utils/echo',
  _rev: '3-abc',
  namespace: 'guest/utils',
  name: 'echo',
  exec: {
    kind: 'nodejs:20',
    code: {
      attachmentName: 'mem:ZnVuY3Rpb24gbWFpbihhKSB7IHJldHVybiBhOyB9',
      attachmentType: 'text/plain; charset=UTF-8',
      length: 30,
      digest: 'sha256-5a',
    },
    binary: false,
    main: 'main',
  },
  parameters: [
    { key: 'p', value: { a: [1, null] } },
    { key: 'e', value: 'x', init: true },
  ],
  limits: { timeout: 60000, memory: 256, logs: 10, concurrency: 1, instances: 4 },
  version: '0.0.7',
  publish: false,
  annotations: [
    { key: 'provide-api-key', value: false },
    { key: 'exec', value: 'nodejs:20' },
  ],
  updated: 1700000000000,
  entityType: 'action',
};

const activation: StoredDocument = {
  _id: 'guest/0123456789abcdef0123456789abcdef',
  namespace: 'guest',
  name: 'echo',
  version: '0.0.7',
  subject: 'guest',
  activationId: '0123456789abcdef0123456789abcdef',
  start: 1700000000000,
  end: 1700000000025,
  duration: 25,
  cause: 'f'.repeat(32),
  response: { statusCode: 1, result: { error: 'x' }, size: 13 },
  logs: ['2026-01-01T00:00:00.123456789Z stdout: hi'],
  publish: false,
  annotations: [
    { key: 'path', value: 'guest/utils/echo' },
    { key: 'initTime', value: 12 },
  ],
  entityType: 'activation',
  updated: 1700000000030,
};

describe('actions', () => {
  test.each<[string, StoredDocument]>([
    ['a packaged one', action],
    ['a sequence', { ...action, exec: { kind: 'sequence', components: ['/guest/a', '/guest/b'] } }],
    ['an image', { ...action, exec: { kind: 'blackbox', image: 'me/it:1', binary: false } }],
    ['plain code', { ...action, exec: { kind: 'swift:5.3', code: 'func', binary: false } }],
  ])('%s is written as it was read', (_, document) => {
    expect(actionDocument(readAction(document))).toEqual(document);
  });

  test('a new one has no revision', () => {
    expect(actionDocument({ ...readAction(action), revision: '' })).not.toHaveProperty('_rev');
  });

  test('the API shows neither revision nor type', () => {
    const { _id, _rev, entityType, exec, ...rest } = action;
    expect([_id, _rev, entityType, typeof exec]).toEqual(['guest/utils/echo', '3-abc', 'action', 'object']);
    expect(actionToApi(readAction(action), { code: false })).toEqual({
      ...rest,
      exec: { kind: 'nodejs:20', binary: false, main: 'main' },
    });
  });

  test('other entities are told apart', () => {
    expect(() => readAction({ ...action, entityType: 'trigger' })).toThrow(EntityTypeError);
    const { exec, entityType, ...untyped } = action;
    expect([typeof exec, entityType]).toEqual(['object', 'action']);
    expect(() => readAction({ ...untyped, _id: action._id })).toThrow(EntityTypeError);
    expect(() => readAction({ ...action, limits: 1 })).toThrow('JSON object expected');
  });

  test('code is fetched from where it lies', async () => {
    const store = simulatedStore({ clock: systemClock, random: seededRandom(1), latencyMs: 0 });
    const source = 'function main(a) { return a; }';
    expect(await readActionCode(store, action)).toEqual({ code: source, binary: false });
    const beside = { attachmentName: 'couch:1-2', attachmentType: 'application/octet-stream' };
    const document = { ...action, exec: { kind: 'nodejs:20', code: beside, binary: true } };
    await expect(readActionCode(store, document)).rejects.toThrow("no document 'guest/utils/echo");
    const zip = { name: '1-2', contentType: 'application/octet-stream', bytes: Buffer.from('zip') };
    await store.put('whisks', { _id: action._id }, [zip]);
    expect(await readActionCode(store, document)).toEqual({ code: 'emlw', binary: true });
    expect((await withCode(store, readAction(document))).exec).toMatchObject({ code: 'emlw' });
    const image = { ...action, exec: { kind: 'blackbox', image: 'a', binary: false } };
    expect(await readActionCode(store, image)).toEqual({ code: '', binary: false });
    const sequence = { ...action, exec: { kind: 'sequence', components: ['/a/b'] } };
    await expect(readActionCode(store, sequence)).rejects.toThrow('a sequence has no code');
  });

  test('code can be dropped', () => {
    expect(withoutCode(readAction(action)).exec).toEqual({ kind: 'nodejs:20', code: '', binary: false, main: 'main' });
  });
});

describe('activations', () => {
  test.each<[string, StoredDocument]>([
    ["an action's", activation],
    ["a trigger's", without({ ...activation, end: 0 }, 'duration', 'cause')],
    ['one without a result', { ...activation, response: { statusCode: 3 } }],
  ])('%s is written as it was read', (_, document) => {
    expect(activationDocument(readActivation(document), 1700000000030)).toEqual(document);
  });

  test('the API shows words for the code', () => {
    const shown = activationToApi(readActivation(activation));
    expect(shown).toEqual({
      ...without(activation, '_id', 'entityType', 'updated'),
      response: { status: 'application error', success: false, result: { error: 'x' }, size: 13 },
    });
  });

  test('a missing duration is the time between', () => {
    expect(activationToApi(readActivation(without(activation, 'duration')))).toMatchObject({ duration: 25 });
  });

  test("a trigger's has no end", () => {
    const shown = activationToApi(readActivation({ ...activation, end: 0 }));
    expect(JSON.stringify(shown)).not.toMatch(/"(end|duration)"/);
  });

  test.each([
    [{ a: 1 }, { a: 1 }],
    [[1], [1]],
    [null, {}],
  ])('the result %j is shown as %j', (result, shown) => {
    expect(activationResult(readActivation({ ...activation, response: { statusCode: 0, result } }))).toEqual(shown);
  });

  test.each([['start'], ['activationId'], ['response'], ['subject']])('without %s it is refused', (field) => {
    expect(() => readActivation(without(activation, field))).toThrow();
  });
  test('an unknown status is refused', () => {
    expect(() => readActivation({ ...activation, response: { statusCode: 4 } })).toThrow('response malformed');
  });
});

describe('limits documents', () => {
  test('are read', () => {
    const limits = { concurrentInvocations: 5, allowedKinds: ['a:1'], storeActivations: false, maxPayloadSize: '2 MB' };
    const kept = { ...limits, warmedContainerKeepingTimeout: '10 minutes' };
    expect(readUserLimits({ _id: 'ns/limits', _rev: '1-a', ...kept, unknown: 1, firesPerMinute: null })).toEqual(kept);
  });

  test.each([
    [undefined],
    [null],
    [{ concurrentInvocations: 'many' }],
    [{ maxActionMemory: 1.5 }],
    [{ maxPayloadSize: 'big' }],
  ])('%j counts as none', (document) => {
    expect(readUserLimits(document)).toEqual({});
  });
});

function without(document: StoredDocument, ...fields: string[]): StoredDocument {
  return Object.fromEntries(Object.entries(document).filter(([field]) => !fields.includes(field))) as StoredDocument;
}
