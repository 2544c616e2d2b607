import { expect } from '@jest/globals';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import { echo, greet } from '../functions.js';
import { accepted, refused } from '../trial.js';
import type { Activation } from '../trial.js';
import { bindingOf } from './packages.js';

const missing = 'The requested resource does not exist.';
const nobody = '0'.repeat(32);

const rows: Row[] = [
  {
    fact: 'the result of an activation',
    stands: 'WskActivationTests: fetch result using activation result API',
    run: async (t) => {
      const { activationId } = await t.run(await t.action(greet));
      const { size, ...result } = accepted(await t.get<Record<string, unknown>>(`activations/${activationId}/result`));
      expect(size).toEqual(expect.any(Number));
      expect(result).toEqual({ result: { payload: 'hello, undefined!' }, success: true, status: 'success' });
    },
  },
  {
    fact: 'the logs of an activation: time, stream, text',
    stands: 'WskActivationLogsTests: fetch logs using activation logs API',
    source: 'common/scala/.../core/containerpool/logging/LogLine.scala',
    run: async (t) => {
      const name = await t.action(
        "function main() { console.log('this is stdout'); console.error('this is stderr'); }",
      );
      const { activationId } = await t.run(name);
      const { logs } = accepted(await t.get<{ logs: string[] }>(`activations/${activationId}/logs`));
      expect(logs).toHaveLength(2);
      const time = '\\d+-\\d+-\\d+T\\d+:\\d+:\\d+\\.\\d+Z';
      expect(logs.join('\n')).toMatch(new RegExp(`^${time} +stdout: this is stdout$`, 'm'));
      expect(logs.join('\n')).toMatch(new RegExp(`^${time} +stderr: this is stderr$`, 'm'));
    },
  },
  {
    fact: 'whoever invokes a shared action has the record in the own namespace',
    stands: 'WskActivationTests: invoke a shared action under a different invocation namespace',
    run: async (t) => {
      const shared = await t.package({ publish: true });
      await t.action(echo, {}, `${shared}/echo`);
      for (const caller of [t.user, t.other]) {
        const record = await t.run(`/${t.namespace}/${shared}/echo`, {}, caller);
        expect(record.namespace).toBe(caller.namespace);
      }
    },
  },
  {
    fact: 'GET of no activation: 404',
    stands: 'WskRestBasicTests: reject get of activation that does not exist',
    run: async (t) => refused(await t.get(`activations/${nobody}`), 404, missing),
  },
  {
    fact: 'logs of no activation: 404',
    stands: 'WskRestBasicTests: reject logs of activation that does not exist',
    run: async (t) => refused(await t.get(`activations/${nobody}/logs`), 404, missing),
  },
  {
    fact: 'result of no activation: 404',
    stands: 'WskRestBasicTests: reject result of activation that does not exist',
    run: async (t) => refused(await t.get(`activations/${nobody}/result`), 404, missing),
  },
  {
    fact: 'an id that is none: 400',
    source: 'common/scala/.../core/entity/ActivationId.scala',
    run: async (t) => {
      refused(await t.get('activations/abc'), 400, 'Activation id length is 3 but must be 32.');
      refused(await t.get(`activations/${'x'.repeat(32)}`), 400, 'The activation id is not valid.');
    },
  },
  {
    fact: 'GET alone: 405',
    run: async (t) => expect((await t.delete(`activations/${nobody}`)).status).toBe(405),
  },
  {
    fact: 'rows by name have no result and no logs; docs=true gives whole records',
    run: async (t) => {
      const name = await t.action(echo);
      const { activationId } = await t.run(name);
      const rowsOf = async (query: string): Promise<Activation[]> =>
        accepted(await t.get<Activation[]>(`activations?name=${name}${query}`));
      const [row, ...others] = await rowsOf('');
      expect([row?.activationId, others]).toEqual([activationId, []]);
      expect(row).not.toHaveProperty('response');
      expect(row).not.toHaveProperty('logs');
      expect(row).toMatchObject({ statusCode: 0, duration: expect.any(Number), annotations: expect.any(Array) });
      expect((await rowsOf('&docs=true'))[0]).toMatchObject({ response: { status: 'success' }, logs: [] });
      expect(accepted(await t.get(`activations?name=${name}&count=true`))).toEqual({ activations: 1 });
    },
  },
  {
    fact: 'since and upto bound the start, both inclusive',
    run: async (t) => {
      const name = await t.action(echo);
      const { start } = await t.run(name);
      const found = async (query: string): Promise<number> =>
        accepted(await t.get<Activation[]>(`activations?name=${name}&${query}`)).length;
      expect(await found(`since=${start}&upto=${start}`)).toBe(1);
      expect(await found(`since=${start + 1}`)).toBe(0);
      expect(await found(`upto=${start - 1}`)).toBe(0);
    },
  },
  {
    fact: 'a packaged action is named with its package, through a binding with that',
    source: 'common/scala/.../core/entity/WhiskActivation.scala',
    run: async (t) => {
      const provider = await t.package();
      const bound = await t.package(bindingOf(provider));
      await t.action(echo, {}, `${provider}/x`);
      const ids = [await t.run(`${provider}/x`), await t.run(`${bound}/x`)].map((record) => record.activationId);
      for (const [at, name] of [provider, bound].entries()) {
        const list = accepted(await t.get<Activation[]>(`activations?name=${name}/x`));
        expect(list.map((row) => row.activationId)).toEqual([ids[at]]);
      }
    },
  },
  {
    fact: 'a name of three parts: 400',
    run: async (t) =>
      refused(
        await t.get('activations?name=a/b/c'),
        400,
        /Parameter may be a 'simple' name or 'package-name\/simple' name: a\/b\/c$/,
      ),
  },
  {
    fact: 'a time that is none: 400',
    run: async (t) =>
      refused(await t.get('activations?since=soon'), 400, /Parameter is not a valid value for epoch seconds: soon$/),
  },
  {
    fact: 'docs with count: 400',
    run: async (t) =>
      refused(
        await t.get('activations?docs=true&count=true'),
        400,
        "The parameter 'docs' is not permitted with 'count'.",
      ),
  },
];

/** Sheet 7: records, read and listed. */
export const activationCases = table('activations', 'core/controller/.../core/controller/Activations.scala', rows);
