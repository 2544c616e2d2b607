import { describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import type { JsonObject, JsonValue } from './json.js';
import { MalformedError } from './entities/malformed.js';
import { activationMessageText, readAcknowledgement, readActivationMessage } from './messages.js';

const fixtures = new URL('../../test/fixtures/openwhisk-messages/', import.meta.url);
const fixture = (name: string): JsonObject =>
  JSON.parse(readFileSync(new URL(`${name}.json`, fixtures), 'utf8')) as JsonObject;

/** A copy of `message` with `value` at `path`; undefined: without it. */
function changed(message: JsonObject, path: string, value: JsonValue | undefined): JsonObject {
  const copy = structuredClone(message);
  const names = path.split('.');
  const last = names.pop() as string;
  let at = copy;
  for (const name of names) at = at[name] as JsonObject;
  if (value === undefined) delete at[last];
  else at[last] = value;
  return copy;
}

describe('activation messages', () => {
  const message = fixture('activation');

  test.each(['activation', 'activation-all-fields', 'activation-newer'])('%s is taken as it is', (name) => {
    const given = fixture(name);
    expect(readActivationMessage(given)).toBe(given);
  });

  test('what an older release leaves out is filled in, and the message stays as it is', () => {
    const given = fixture('activation-older');
    const before = structuredClone(given);
    expect(readActivationMessage(given)).toEqual({ ...given, revision: '', initArgs: [], lockedArgs: {} });
    expect(given).toEqual(before);
  });

  test.each(['activation', 'activation-all-fields'])(
    'the text of %s is the same message, also for a known caller',
    (name) => {
      const given = readActivationMessage(fixture(name));
      const next = { ...given, activationId: '0'.repeat(32) };
      expect([given, next].map((each) => JSON.parse(activationMessageText(each)) as unknown)).toEqual([given, next]);
    },
  );

  test('null is nothing', () => {
    const read = readActivationMessage({ ...message, cause: null, content: null, traceContext: null });
    expect(Object.keys(read).sort()).toEqual(
      Object.keys(message)
        .filter((name) => name !== 'content')
        .sort(),
    );
  });

  test.each<[string, JsonValue | undefined]>([
    ['transid', undefined],
    ['transid', ['only an id']],
    ['transid', 'text'],
    ['action', 'guest/greet'],
    ['action.path', 7],
    ['action.name', undefined],
    ['action.version', 3],
    ['action.binding', {}],
    ['revision', 3],
    ['user', undefined],
    ['user.namespace', 'guest'],
    ['user.authkey', 'uuid:key'],
    ['user.authkey.api_key', undefined],
    ['user.limits', undefined],
    ['activationId', undefined],
    ['activationId', '../../etc'],
    ['rootControllerIndex', 0],
    ['rootControllerIndex.asString', 0],
    ['rootControllerIndex.asString', 'a b'],
    ['rootControllerIndex.asString', 'x'.repeat(101)],
    ['blocking', 'true'],
    ['content', 'text'],
    ['initArgs', [1]],
    ['initArgs', {}],
    ['lockedArgs', []],
    ['cause', 1],
    ['traceContext', 'x'],
    ['executeOnly', 'x'],
  ])('one whose %s is %j is refused', (path, value) => {
    expect(() => readActivationMessage(changed(message, path, value))).toThrow(MalformedError);
  });
});

describe('acknowledgements', () => {
  test.each(['combined', 'combined-id-only', 'completion', 'result', 'result-id-only'])(
    '%s is taken as it is',
    (name) => {
      const given = fixture(name);
      expect(readAcknowledgement(given)).toBe(given);
    },
  );

  test('a completion of an older release is one', () => {
    const given = fixture('completion-older');
    expect(readAcknowledgement(given)).toMatchObject({ instance: { instance: 2 }, isSystemError: false });
  });

  test('a null response is none', () => {
    expect(readAcknowledgement({ ...fixture('completion'), response: null })).not.toHaveProperty('response');
  });

  test.each<[string, string, JsonValue | undefined]>([
    ['combined', 'transid', 1],
    ['combined', 'response', 7],
    ['combined', 'response', 'no id!'],
    ['combined', 'response.activationId', undefined],
    ['combined', 'response.response', undefined],
    ['combined', 'response.response.statusCode', 9],
    ['combined', 'response.annotations', undefined],
    ['combined', 'instance', 'invoker2'],
    ['combined', 'isSystemError', 'no'],
    ['completion', 'isFailed', 'no'],
    ['completion', 'inputSize', 'no'],
    ['completion', 'activationId', undefined],
    ['completion', 'instance', undefined],
    ['result', 'response', undefined],
  ])('%s whose %s is %j is refused', (name, path, value) => {
    expect(() => readAcknowledgement(changed(fixture(name), path, value))).toThrow(MalformedError);
  });
});
