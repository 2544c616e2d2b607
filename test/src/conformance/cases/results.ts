import { expect } from '@jest/globals';
import { logTexts } from '../../support/api-client.js';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import { countWords, countWordsLater, fail, greet, logParameters } from '../functions.js';
import { valueOf } from '../trial.js';
import type { Trial } from '../trial.js';

/** Expects the status `action developer error` with this error. */
async function failsWith(t: Trial, code: string, error: unknown, limits = {}): Promise<void> {
  const { response } = await t.run(await t.action(code, { limits }), {});
  expect(response).toMatchObject({ status: 'action developer error', success: false, result: { error } });
}

const rows: Row[] = [
  {
    fact: 'a promise is waited for',
    stands: 'WskActionTests: invoke an action returning a promise',
    run: async (t) => {
      const code = 'function main() { return new Promise((done) => setTimeout(() => done({ done: true }), 200)); }';
      const record = await t.run(await t.action(code, {}, t.name('hello promise')));
      expect([record.response.status, record.response.result, record.logs]).toEqual(['success', { done: true }, []]);
    },
  },
  {
    fact: 'an action with spaces in its name runs',
    stands: 'WskActionTests: invoke an action with a space in the name',
    run: async (t) => {
      const record = await t.run(await t.action(countWordsLater, {}, t.name('hello Async')), {
        payload: 'this is a test',
      });
      expect(record.response.result).toEqual({ count: 4 });
      expect(record.logs.join()).toContain('this is a test');
    },
  },
  {
    fact: 'something thrown is a developer error',
    stands: 'WskActionTests: invoke an action that throws an uncaught exception and returns correct status code',
    run: (t) =>
      failsWith(
        t,
        "function main() { throw 'Extraordinary exception'; }",
        'An error has occurred: Extraordinary exception',
      ),
  },
  {
    fact: 'parameters of the action are given with the payload',
    stands: 'WskActionTests: pass parameters bound on creation-time to the action',
    run: async (t) => {
      const parameters = [
        { key: 'param1', value: 'test1' },
        { key: 'param2', value: 'test2' },
      ];
      const record = await t.run(await t.action(logParameters, { parameters }), { payload: 'this is a test' });
      expect(logTexts(record)).toEqual(['param1: test1 param2: test2 payload: this is a test']);
    },
  },
  {
    fact: 'a copy of an action in a shared package runs',
    stands: 'WskActionTests: copy an action and invoke it successfully',
    run: async (t) => {
      const shared = await t.package({ publish: true });
      await t.action(countWords, {}, `${shared}/wordcount`);
      const { body } = await t.get<{ exec: object }>(`actions/${shared}/wordcount`);
      const name = t.name('copied');
      await t.replace(`actions/${name}`, { exec: body.exec });
      expect((await t.run(name, { payload: 'this is a test' })).response.result).toEqual({ count: 4 });
    },
  },
  {
    fact: 'an action created anew runs its new code',
    stands: 'WskActionTests: recreate and invoke a new action with different code',
    run: async (t) => {
      const name = await t.action(countWords);
      expect((await t.run(name, { payload: 'a b' })).logs.join()).toContain("The message 'a b' has");
      await t.delete(`actions/${name}`);
      await t.action(greet, {}, name);
      expect(logTexts(await t.run(name, { payload: 'a b' }))).toEqual(['hello, a b!']);
    },
  },
  {
    fact: 'empty code: a developer error that says so',
    stands: 'WskActionTests: fail to invoke an action with an empty file',
    run: (t) => failsWith(t, '', 'Missing main/no code to execute.'),
  },
  {
    fact: 'code that cannot be read: a developer error with the reason',
    stands: 'WskRestBasicTests: create and invoke action with malformed js resulting in activation error',
    run: (t) => failsWith(t, 'x', expect.stringContaining('ReferenceError')),
  },
  {
    fact: 'arguments and logs are UTF-8',
    stands: 'WskActionTests: support UTF-8 as input and output format',
    run: async (t) => {
      const payload = '«ταБЬℓσö»: 1<2 & 4+1>³, now 20%€§$ off!';
      const record = await t.run(await t.action(greet), { payload });
      expect([record.response.status, logTexts(record)]).toEqual(['success', [`hello, ${payload}!`]]);
    },
  },
  {
    fact: '&, < and > come back as they are',
    stands: 'WskRestBasicUsageTests: invoke action while not encoding &, <, > characters',
    run: async (t) => {
      const record = await t.run(await t.action(greet), { payload: '&<>' });
      expect([record.response.result, logTexts(record)]).toEqual([{ payload: 'hello, &<>!' }, ['hello, &<>!']]);
    },
  },
  {
    fact: 'an array may be the result',
    stands: 'WskActionTests: invoke an action with a array result',
    run: async (t) => {
      const name = await t.action("function main() { return [{ key1: 'value1' }, { key2: 'value2' }]; }");
      const { response } = await t.run(name);
      expect([response.status, response.result]).toEqual(['success', [{ key1: 'value1' }, { key2: 'value2' }]]);
    },
  },
  {
    fact: 'a payload from a file is a payload',
    stands: 'WskRestBasicTests: create, and invoke an action using a parameter file',
    run: async (t) => {
      const name = await t.action('function main({ payload }) { return { payload }; }');
      expect((await t.run(name, { payload: 'test' })).response.result).toEqual({ payload: 'test' });
    },
  },
  {
    fact: 'a process that ends while it starts',
    stands: 'WskRestBasicUsageTests: invoke an action that exits during initialization and get appropriate error',
    run: (t) => failsWith(t, 'process.exit(1);', 'The action did not initialize and exited unexpectedly.'),
  },
  {
    fact: 'a process that does not come to an end of its start',
    stands: 'WskRestBasicUsageTests: invoke an action that hangs during initialization and get appropriate error',
    run: (t) =>
      failsWith(
        t,
        'while (true) {}',
        'The action exceeded its time limits of 1000 milliseconds during initialization.',
        {
          timeout: 1000,
        },
      ),
  },
  {
    fact: 'a process that ends while it runs',
    stands: 'WskRestBasicUsageTests: invoke an action that exits during run and get appropriate error',
    run: (t) =>
      failsWith(
        t,
        'function main() { process.exit(1); }',
        'The action did not produce a valid response and exited unexpectedly.',
      ),
  },
  {
    fact: 'an image that is not there is a developer error',
    stands:
      'WskRestBasicUsageTests: create, and invoke an action that utilizes an invalid docker container with appropriate error',
    run: async (t) => {
      const [name, image] = [t.name('action'), `bogus${Date.now()}`];
      await t.replace(`actions/${name}`, { exec: { kind: 'blackbox', image } });
      const { response, annotations } = await t.run(name);
      expect(response.status).toBe('action developer error');
      expect(response.result).toEqual({ error: `Failed to pull container image '${image}'.` });
      expect(valueOf(annotations, 'limits')).toEqual(expect.objectContaining({ memory: 256 }));
    },
  },
  {
    fact: 'an error alone is the result of an application error',
    run: async (t) => {
      const name = await t.action("function main() { return { error: 'e', other: 1 }; }");
      expect((await t.run(name)).response).toMatchObject({ status: 'application error', result: { error: 'e' } });
    },
  },
  {
    fact: 'the result of a failed action is its error alone',
    run: async (t) => {
      const { response } = await t.run(await t.action(fail));
      expect(response).toMatchObject({ status: 'application error', success: false });
      expect(response.result).toEqual({ error: 'failed on purpose' });
    },
  },
];

/** Sheet 3: how the end of a function becomes the status of its activation. */
export const resultCases = table('results', 'common/scala/.../core/entity/ActivationResult.scala', rows);
