import { expect } from '@jest/globals';
import AdmZip from 'adm-zip';
import { logTexts } from '../../support/api-client.js';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import type { Trial } from '../trial.js';

/** The response of an activation of this code. */
async function responseOf(t: Trial, code: string, main?: string): Promise<object> {
  return (await t.run(await t.action(code, main === undefined ? {} : { main }))).response;
}

const developerError = (error: string): object => ({ status: 'action developer error', result: { error } });

const rows: Row[] = [
  {
    fact: 'parameters marked init are in the environment, not in the arguments',
    source: 'core/invoker/.../core/containerpool/ContainerProxy.scala',
    run: async (t) => {
      const code = `function main(args) {
        const { TEXT, OBJECT } = process.env;
        return { TEXT, OBJECT, keys: Object.keys(args) };
      }`;
      const parameters = [
        { key: 'TEXT', value: 'as it is', init: true },
        { key: 'OBJECT', value: { a: [1] }, init: true },
        { key: 'other', value: 1 },
      ];
      const { result } = (await t.run(await t.action(code, { parameters }))).response;
      expect(result).toEqual({ TEXT: 'as it is', OBJECT: '{"a":[1]}', keys: ['other'] });
    },
  },
  {
    fact: 'what is returned is an object or an array',
    run: async (t) =>
      expect(await responseOf(t, 'function main() { return 7; }')).toMatchObject(
        developerError('The action did not return a dictionary.'),
      ),
  },
  {
    fact: 'code that throws while it is loaded',
    run: async (t) =>
      expect(await responseOf(t, "throw new Error('at once');")).toMatchObject({
        status: 'action developer error',
        result: { error: expect.stringContaining('Initialization has failed due to: ') },
      }),
  },
  {
    fact: 'main names the function',
    run: async (t) =>
      expect(await responseOf(t, 'function other() { return { other: true }; }', 'other')).toMatchObject({
        status: 'success',
        result: { other: true },
      }),
  },
  {
    fact: 'a zip with index.js or package.json',
    run: async (t) => {
      for (const [main, file] of [
        ['index.js', 'index.js'],
        ['package.json', 'lib/start.js'],
      ] as const) {
        const zip = new AdmZip();
        zip.addFile(file, Buffer.from("exports.main = () => ({ from: 'a zip' });"));
        if (main === 'package.json') zip.addFile(main, Buffer.from(`{"main":"${file}"}`));
        expect(await responseOf(t, zip.toBuffer().toString('base64'))).toMatchObject({
          status: 'success',
          result: { from: 'a zip' },
        });
      }
    },
  },
  {
    fact: 'a log limit of 0 keeps no log',
    source: 'common/scala/.../core/containerpool/logging/DockerToActivationLogStore.scala',
    run: async (t) => {
      const name = await t.action("function main() { console.log('unkept'); }", { limits: { logs: 0 } });
      expect((await t.run(name)).logs).toEqual([]);
    },
  },
  {
    fact: 'the log of a developer error ends with a warning on stderr',
    source: 'common/scala/.../core/containerpool/logging/LogStore.scala',
    run: async (t) => {
      const record = await t.run(await t.action("function main() { console.log('first'); process.exit(1); }"));
      expect(logTexts(record)).toEqual([
        'first',
        'The action did not initialize or run as expected. Log data might be missing.',
      ]);
      expect(record.logs.at(-1)).toMatch(/^\S{20,} +stderr: /);
    },
  },
  {
    fact: 'the second run of an action finds it warm',
    source: 'core/invoker/.../core/containerpool/ContainerPool.scala',
    run: async (t) => {
      const name = await t.action('let runs = 0; function main() { return { runs: ++runs }; }');
      const results = [];
      for (let run = 0; run < 2; run++) results.push((await t.invoke(name)).body);
      expect(results.map((record) => record.response.result)).toEqual([{ runs: 1 }, { runs: 2 }]);
      const cold = results.map((record) => record.annotations.some(({ key }) => key === 'initTime'));
      expect(cold).toEqual([true, false]);
    },
  },
];

/** Sheets 3 and 8: how functions are loaded, run and logged. */
export const runtimeCases = table('runtime', 'docs/actions-nodejs.md', rows);
