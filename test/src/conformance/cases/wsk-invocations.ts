import { expect } from '@jest/globals';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import { countWords, echo, sleep } from '../functions.js';
import type { Activation, Trial } from '../trial.js';
import { exits, WskShell } from '../wsk-shell.js';
import { described, summarised, withRule, recordOf } from '../wsk-basics.js';

const suite = 'WskCliBasicTests: ';

/** Exit codes for a failed activation and for an activation that still runs. */
const failed = 246;

const accepted = 202;

async function withAction(t: Trial, text: string, rest: readonly string[] = []): Promise<[WskShell, string]> {
  const shell = await WskShell.open(t);
  await shell.write('code.js', text);
  return [shell, await shell.create('action', t.name('action'), ['code.js', ...rest])];
}

const rows: Row[] = [
  {
    fact: 'an action is made, changed, read and listed',
    stands: `${suite}create, update, get and list an action`,
    run: async (t) => {
      const shell = await WskShell.open(t);
      const name = await shell.create('action', t.name('action'), 'hello.js -p a A');
      await shell.prints(`action update ${name} -p b B`);
      expect(await shell.json(`action get ${name}`)).toMatchObject({
        parameters: [{ key: 'b', value: 'B' }],
        publish: false,
        version: '0.0.2',
      });
      expect(await shell.prints('action list --limit 200')).toContain(name);
    },
  },
  {
    fact: 'a file of parameters is what an action is invoked with',
    stands: `${suite}create, and invoke an action using a parameter file`,
    run: async (t) => {
      const [shell, name] = await withAction(t, echo);
      await shell.write('parameters.json', '{ "payload": "test" }');
      const { response } = await recordOf(shell, ['action', 'invoke', name, '-P', 'parameters.json']);
      expect(response.result).toEqual({ payload: 'test' });
    },
  },
  {
    fact: 'code that is no JavaScript is the error of who wrote it',
    stands: `${suite}create and invoke action with malformed js resulting in activation error`,
    run: async (t) => {
      const [shell, name] = await withAction(t, 'x');
      const { response } = await recordOf(shell, ['action', 'invoke', name, '-p', 'payload', 'whatever']);
      expect(response.status).toBe('action developer error');
      expect(JSON.stringify(response.result)).toContain('ReferenceError');
    },
  },
  {
    fact: 'an error that an action returns is told on standard error',
    stands: `${suite}create and invoke a blocking action resulting in an application error response`,
    run: async (t) => {
      const [shell, name] = await withAction(t, echo);
      for (const error of ['Error message', 502, true]) {
        const invoke = ['action', 'invoke', name, '--blocking', '-p', 'error', String(error)];
        const { stderr } = await shell.fails(invoke, failed);
        const record = JSON.parse(stderr.slice(stderr.indexOf('{'))) as Activation;
        expect(record.response.result).toEqual({ error });
        const alone = await shell.fails([...invoke, '--result'], failed);
        expect(JSON.parse(alone.stderr)).toEqual({ error });
      }
    },
  },
  {
    fact: 'a promise that fails is the error of its action',
    stands: `${suite}create and invoke a blocking action resulting in an failed promise`,
    run: async (t) => {
      const [shell, name] = await withAction(t, "function main() { return Promise.reject({ msg: 'on purpose' }); }");
      const { stderr } = await shell.fails(`action invoke ${name} --blocking`, failed);
      const record = JSON.parse(stderr.slice(stderr.indexOf('{'))) as Activation;
      expect(record.response.result).toEqual({ error: { msg: 'on purpose' } });
    },
  },
  {
    fact: 'a result is waited for, and told alone',
    stands: [
      `${suite}invoke a blocking action and get only the result`,
      `${suite}create an action, and invoke an action that returns an empty JSON object`,
    ],
    run: async (t) => {
      const [shell, name] = await withAction(t, countWords);
      const args = ['action', 'invoke', name, '--result', '-p', 'payload', 'one two three'];
      expect(await shell.prints(args)).toContain('"count": 3');
      const [other, empty] = await withAction(t, 'function main() { return {}; }');
      expect(JSON.parse(await other.prints(`action invoke ${empty} --result`))).toEqual({});
    },
  },
  {
    fact: 'a summary has description and parameters of an action',
    stands: `${suite}create, and get an action summary`,
    run: async (t) => {
      const [shell, name] = await withAction(t, echo, ['-a', 'description', 'It acts', '-a', 'parameters', described]);
      const summary = await shell.prints(`action get ${name} --summary`);
      expect(summary).toMatch(new RegExp(`action /${t.namespace}/${name}: It acts${summarised}`));
    },
  },
  {
    fact: 'a run that takes longer than a caller waits goes on',
    needs: 'encryption',
    stands: `${suite}create, and invoke an action that times out to ensure the proper response is received`,
    run: async (t) => {
      // On the server where callers wait for 3 s.
      const { url, auth } = await t.encrypting();
      const shell = await WskShell.open(t, { APIHOST: url, AUTH: auth });
      await shell.write('sleep.js', sleep);
      const name = t.name('sleep');
      await shell.prints(`action create ${name} sleep.js -t 30000`);
      const invoke = ['action', 'invoke', name, '--result', '-p', 'sleepMs', '5000'];
      await shell.fails(invoke, accepted, 'but the request has not yet finished');
      await shell.prints(`action delete ${name}`);
    },
  },
  {
    fact: 'an action of an image has no code',
    stands: `${suite}create, and get docker action get ensure exec code is omitted`,
    run: async (t) => {
      const shell = await WskShell.open(t);
      const name = await shell.create('action', t.name('image'), '--docker fake-container');
      expect(await shell.prints(`action get ${name}`)).not.toContain('"code"');
    },
  },
  {
    fact: 'the record of a trigger has the fields of all records',
    stands: `${suite}create a trigger, and fire a trigger to get its individual fields from an activation`,
    run: async (t) => {
      const { shell, trigger } = await withRule(t);
      const { activationId } = await recordOf(shell, ['trigger', 'fire', trigger]);
      const record = await shell.json<Activation>(`activation get ${activationId}`);
      expect(record).toMatchObject({
        namespace: t.namespace,
        name: trigger,
        version: '0.0.1',
        publish: false,
        activationId,
        subject: expect.stringMatching(/./),
        start: expect.any(Number),
        end: 0,
        duration: 0,
        annotations: [],
      });
    },
  },
  {
    fact: 'an id and --last are not given together',
    stands: `${suite}reject activation request when using activation ID with --last Flag`,
    run: async (t) => {
      const shell = await WskShell.open(t);
      const both = 'dummyActivationId. An activation ID is required.';
      for (const [command, text] of [
        ['activation get dummyActivationId publish --last', both],
        ['activation get dummyActivationId --last', "Invalid field filter 'dummyActivationId'."],
        ['activation logs dummyActivationId --last', both],
        ['activation result dummyActivationId --last', both],
      ] as const) {
        await shell.fails(command, exits.error, text);
      }
    },
  },
];

/** Actions and their activations in `wsk`. */
export const wskInvocationCases = table('wsk: basics', 'system/basic/WskCliBasicTests.scala', rows);
