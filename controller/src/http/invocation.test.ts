import { describe, expect, test } from '@jest/globals';
import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import type { ActivationResponse } from '@gpuwhisk/common/entities/activation';
import type { Parameter } from '@gpuwhisk/common/entities/parameters';
import type { RuntimeManifest } from '@gpuwhisk/common/runtimes';
import { checkInvocable, invocationAnswer, readInvokeOptions } from './invocation.js';

const activationId = 'a'.repeat(32);

function action(parameters: Parameter[], annotations: Parameter[], kind = 'k:1'): WhiskAction {
  return {
    namespace: 'ns',
    name: 'a',
    exec: { kind, code: '', binary: false },
    parameters,
    limits: { timeout: 1, memory: 1, logs: 1, concurrency: 1 },
    version: '0.0.1',
    publish: false,
    annotations,
    updated: 1,
    revision: '1-a',
  };
}

const manifest: RuntimeManifest = {
  runtimes: {
    k: [
      {
        kind: 'k:0',
        image: { prefix: 'p', name: 'n', tag: 't' },
        default: false,
        deprecated: true,
        requireMain: false,
        sentinelledLogs: true,
        stemCells: [],
      },
    ],
  },
};

describe('options', () => {
  test.each([
    ['', { blocking: false, result: false, waitMs: 1000 }],
    ['blocking=true', { blocking: true, result: false, waitMs: 1000 }],
    ['result=true&timeout=10', { blocking: false, result: true, waitMs: 10 }],
    ['timeout=1000', { blocking: false, result: false, waitMs: 1000 }],
  ])('%j', (text, options) => {
    expect(readInvokeOptions(new URLSearchParams(text), 1000)).toEqual(options);
  });

  test.each(['0', '1001', '', 'x'])('timeout=%j is refused', (timeout) => {
    expect(() => readInvokeOptions(new URLSearchParams({ timeout }), 1000)).toThrow(
      'Timeout must be number of milliseconds up to 1000.',
    );
  });
});

describe('what may be invoked', () => {
  const fixed = [{ key: 'a', value: 1 }];
  test.each<[string, Parameter[], unknown, object]>([
    ['other keys', fixed, true, { b: 1 }],
    ['a key without a value', [{ key: 'a', value: null }], true, { a: 2 }],
    ['an action that is not final', fixed, false, { a: 2 }],
    ['an annotation that is no boolean', fixed, 'true', { a: 2 }],
  ])('%s: yes', (_, parameters, final, payload) => {
    const annotations = [{ key: 'final', value: final as boolean }];
    expect(() => checkInvocable(action(parameters, annotations), { ...payload }, manifest)).not.toThrow();
  });

  test('a final key: no', () => {
    const final = action(fixed, [{ key: 'final', value: true }]);
    expect(() => checkInvocable(final, { a: 1 }, manifest)).toThrow('parameters that are not allowed');
  });

  test('a kind past its life: no', () => {
    expect(() => checkInvocable(action([], [], 'k:0'), {}, manifest)).toThrow(
      "The 'k:0' runtime is no longer supported.",
    );
  });
});

describe('answers', () => {
  const header = ['x-openwhisk-activation-id', activationId];
  const completed = (response: ActivationResponse, resultOnly: boolean): ReturnType<typeof invocationAnswer> =>
    invocationAnswer(
      {
        type: 'completed',
        activation: {
          namespace: 'ns',
          name: 'a',
          version: '0.0.1',
          subject: 'someone',
          activationId,
          start: 1,
          end: 2,
          response,
          logs: [],
          publish: false,
          annotations: [],
        },
      },
      resultOnly,
    );

  test('accepted', () => {
    expect(invocationAnswer({ type: 'accepted', activationId }, true)).toEqual({
      status: 202,
      body: JSON.stringify({ activationId }),
      headers: header,
    });
  });

  test.each([
    [0, 200],
    [1, 502],
    [2, 502],
    [3, 500],
  ] as const)('status code %d is %d', (statusCode, status) => {
    const result = { x: 1 };
    expect(completed({ statusCode, result }, true)).toEqual({ status, body: '{"x":1}', headers: header });
    const whole = completed({ statusCode, result }, false);
    expect(whole).toMatchObject({ status, headers: header });
    expect(JSON.parse(String(whole.body))).toMatchObject({ activationId, duration: 1, response: { result } });
  });

  test('arrays are bare', () => {
    for (const resultOnly of [true, false]) {
      expect(completed({ statusCode: 0, result: [1] }, resultOnly).body).toBe('[1]');
    }
  });
});
