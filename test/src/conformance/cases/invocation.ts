import { expect } from '@jest/globals';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import { context, countWords, countWordsLater, echo, sleep } from '../functions.js';
import { refused, valueOf } from '../trial.js';
import type { Activation, Trial } from '../trial.js';

const post = 'core/controller/.../core/controller/actions/PostActionActivation.scala';
const records = 'common/scala/.../core/entity/WhiskActivation.scala';

const answers: Row[] = [
  {
    fact: 'non-blocking: 202 with the id, which is a header too',
    run: async (t) => {
      const { status, body, headers } = await t.post(`actions/${await t.action(echo)}`, {});
      expect([status, body]).toEqual([202, { activationId: expect.stringMatching(/^[0-9a-f]{32}$/) }]);
      expect(headers['x-openwhisk-activation-id']).toBe(body.activationId);
      await t.record(body.activationId);
    },
  },
  {
    fact: 'blocking: the whole record, its logs empty',
    stands: 'WskActionTests: blocking invoke an asynchronous action',
    run: async (t) => {
      const { status, body } = await t.invoke(await t.action(countWordsLater), { payload: 'this is a test' });
      expect(status).toBe(200);
      expect(body.response).toMatchObject({ status: 'success', success: true, result: { count: 4 } });
      expect(body.logs).toEqual([]);
    },
  },
  {
    fact: 'result=true: the result alone',
    stands: [
      'WskRestBasicTests: invoke a blocking action and get only the result',
      'WskRestBasicUsageTests: invoke an action successfully with options --blocking and --result',
    ],
    run: async (t) => {
      const { status, body } = await t.invoke(
        await t.action(countWords),
        { payload: 'one two three' },
        'blocking=true&result=true',
      );
      expect([status, body]).toEqual([200, { count: 3 }]);
    },
  },
  {
    fact: 'an error of the application: 502, whole or result alone',
    stands: 'WskRestBasicTests: create and invoke a blocking action resulting in an application error response',
    run: async (t) => {
      const name = await t.action(echo);
      for (const error of ['Error message', 502, true]) {
        const whole = await t.invoke(name, { error });
        expect([whole.status, whole.body.response.result]).toEqual([502, { error }]);
        expect(whole.body.response.status).toBe('application error');
        const alone = await t.invoke(name, { error }, 'blocking=true&result=true');
        expect([alone.status, alone.body]).toEqual([502, { error }]);
      }
    },
  },
  {
    fact: 'a promise that fails: 502 with its reason as the error',
    stands: 'WskRestBasicTests: create and invoke a blocking action resulting in an failed promise',
    run: async (t) => {
      const name = await t.action("function main() { return Promise.reject({ msg: 'failed on purpose' }); }");
      const { status, body } = await t.invoke(name);
      expect([status, body.response.result]).toEqual([502, { error: { msg: 'failed on purpose' } }]);
    },
  },
  {
    fact: 'nothing returned is an empty object',
    stands: 'WskRestBasicTests: create an action, and invoke an action that returns an empty JSON object',
    run: async (t) => {
      const { status, body } = await t.invoke(await t.action('function main() {}'), {}, 'blocking=true&result=true');
      expect([status, body]).toEqual([200, {}]);
    },
  },
  {
    fact: 'an array is answered bare',
    run: async (t) => {
      const name = await t.action('function main() { return [1, 2]; }');
      for (const query of ['blocking=true', 'blocking=true&result=true'])
        expect((await t.invoke(name, {}, query)).body).toEqual([1, 2]);
    },
  },
  {
    fact: 'timeout bounds the wait: 202 with the id, and the action goes on',
    source: 'core/controller/.../core/controller/Actions.scala',
    run: async (t) => {
      const name = await t.action(sleep);
      const { status, body } = await t.invoke(name, { sleepMs: 300 }, 'blocking=true&timeout=50');
      expect([status, body]).toEqual([202, { activationId: expect.any(String) }]);
      expect((await t.record(body.activationId)).response.result).toEqual({ slept: true });
    },
  },
  {
    fact: 'timeout out of 1 to 60000: 400',
    source: 'core/controller/.../core/controller/Actions.scala',
    run: async (t) => {
      const name = await t.action(echo);
      for (const timeout of ['0', '60001', 'soon']) {
        const reply = await t.invoke(name, {}, `blocking=true&timeout=${timeout}`);
        refused(reply, 400, /Timeout must be number of milliseconds up to 60000\.$/);
      }
    },
  },
  {
    fact: 'an array is no payload: 400',
    source: 'core/controller/.../core/controller/Actions.scala',
    run: async (t) => expect((await t.invoke(await t.action(echo), [1])).status).toBe(400),
  },
  {
    fact: 'a payload of more than 1 MiB: 413',
    source: 'core/controller/.../core/entitlement/Entitlement.scala',
    run: async (t) => {
      const reply = await t.invoke(await t.action(echo), { a: 'x'.repeat(1_048_576) });
      refused(reply, 413, /^Request larger than allowed: \d+ > 1048576 bytes\./);
    },
  },
  {
    fact: 'final parameters are not overridden: 400',
    source: 'core/controller/.../core/controller/Actions.scala',
    run: async (t) => {
      const name = await t.action(echo, { parameters: [{ key: 'a', value: 1 }], annotations: { final: true } });
      const text = 'Request defines parameters that are not allowed (e.g., reserved properties).';
      refused(await t.invoke(name, { a: 2 }), 400, text);
      expect((await t.invoke(name, { b: 2 }, 'blocking=true&result=true')).body).toEqual({ a: 1, b: 2 });
    },
  },
];

async function contextOf(
  t: Trial,
  annotations: Record<string, boolean>,
): Promise<[Activation, Record<string, string>]> {
  const name = t.name('context');
  const record = await t.run(await t.action(context, { annotations }, name));
  expect(record.response.status).toBe('success');
  const told = record.response.result as Record<string, string>;
  expect(told).toMatchObject({
    api_host: expect.any(String),
    namespace: t.namespace,
    action_name: `/${t.namespace}/${name}`,
    action_version: '0.0.1',
    activation_id: record.activationId,
  });
  expect(Number(told.deadline)).toBeGreaterThanOrEqual(record.start);
  return [record, told];
}

const recorded: Row[] = [
  {
    fact: 'a record has every field',
    stands: 'WskRestBasicUsageTests: ensure keys are not omitted from activation record',
    source: records,
    run: async (t) => {
      const name = await t.action('function main({ payload }) { return { payload }; }');
      const record = await t.run(name);
      expect(record).toEqual({
        namespace: t.namespace,
        name,
        version: '0.0.1',
        subject: expect.any(String),
        activationId: expect.any(String),
        start: expect.any(Number),
        end: expect.any(Number),
        duration: expect.any(Number),
        response: { status: 'success', success: true, result: {}, size: expect.any(Number) },
        logs: [],
        publish: false,
        annotations: expect.any(Array),
      });
    },
  },
  {
    fact: 'annotations have path, kind, limits, timeout, waitTime and the time of a cold start',
    stands: 'WskRestBasicUsageTests: write the action-path and the limits to the annotations',
    source: records,
    run: async (t) => {
      const limits = { timeout: 60000, memory: 512, logs: 1, concurrency: 1 };
      const name = await t.action(echo, { limits });
      const { annotations } = await t.run(name);
      expect(valueOf(annotations, 'path')).toBe(`${t.namespace}/${name}`);
      expect(valueOf(annotations, 'limits')).toEqual(limits);
      expect(valueOf(annotations, 'kind')).toMatch(/^nodejs:/);
      expect(valueOf(annotations, 'timeout')).toBe(false);
      expect(valueOf(annotations, 'waitTime')).toEqual(expect.any(Number));
      expect(valueOf(annotations, 'initTime')).toEqual(expect.any(Number));
    },
  },
  {
    fact: 'a function is told its context, not the key',
    stands: 'WskRestBasicUsageTests: invoke an action receiving context properties excluding api key',
    source: 'core/invoker/.../core/containerpool/ContainerProxy.scala',
    run: async (t) => expect((await contextOf(t, {}))[1]).not.toHaveProperty('api_key'),
  },
  {
    fact: 'the key too, where provide-api-key says so',
    stands: 'WskRestBasicUsageTests: invoke an action receiving context properties including api key',
    source: 'core/invoker/.../core/containerpool/ContainerProxy.scala',
    run: async (t) => expect((await contextOf(t, { 'provide-api-key': true }))[1].api_key).toBe(t.user.auth),
  },
];

/** Sheet 3: invocations, their answers and records. */
export const invocationCases = [...table('invocation', post, answers), ...table('records', records, recorded)];
