import { expect } from '@jest/globals';
import { until } from '../../support/running-platform.js';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import { context, echo } from '../functions.js';
import { valueOf } from '../trial.js';
import type { Activation } from '../trial.js';
import { WskShell } from '../wsk-shell.js';
import { recordOf, withAction } from '../wsk-usage.js';

const suite = 'WskCliBasicUsageTests: ';

/** An action that ends shortly before its deadline, or never with `forceHang`. */
const beforeDeadline = `function main({ forceHang }) {
  return new Promise((done) => {
    if (forceHang) return;
    setTimeout(() => done({ timedout: true }), Math.max(0, process.env.__OW_DEADLINE - Date.now() - 500));
  });
}`;

const rows: Row[] = [
  {
    fact: 'an action that ends while it is loaded has failed',
    stands: `${suite}invoke an action that exits during initialization and get appropriate error`,
    run: async (t) => {
      const { shell, name } = await withAction(t, 'process.exit(1);');
      const { response } = await recordOf(shell, [name]);
      expect(response).toMatchObject({
        status: 'action developer error',
        result: { error: 'The action did not initialize and exited unexpectedly.' },
      });
    },
  },
  {
    fact: 'an action that is loaded for ever is stopped',
    stands: `${suite}invoke an action that hangs during initialization and get appropriate error`,
    run: async (t) => {
      const { shell, name } = await withAction(t, 'while (true);', ['-t', '3000']);
      const { response } = await recordOf(shell, [name]);
      expect(response).toMatchObject({
        status: 'action developer error',
        result: { error: 'The action exceeded its time limits of 3000 milliseconds during initialization.' },
      });
    },
  },
  {
    fact: 'an action that ends while it runs has failed',
    stands: `${suite}invoke an action that exits during run and get appropriate error`,
    run: async (t) => {
      const { shell, name } = await withAction(t, 'function main() { process.exit(1); }');
      const { response } = await recordOf(shell, [name]);
      expect(response).toMatchObject({
        status: 'action developer error',
        result: { error: 'The action did not produce a valid response and exited unexpectedly.' },
      });
    },
  },
  {
    fact: 'the last activation is found without its id',
    needs: 'operator',
    stands: `${suite}retrieve the last activation using --last flag`,
    run: async (t) => {
      // With a separate identity, because other cases invoke actions at the same time.
      const { auth, url } = await t.identity();
      const shell = await WskShell.open(t, { APIHOST: url, AUTH: auth });
      await shell.prints('action create lastName hello.js');
      const printed = await shell.prints('action invoke lastName');
      const [id = ''] = /[0-9a-f]{32}/.exec(printed) ?? [];
      await until('it is stored', async () => (await shell.run('activation get --last')).stdout.includes(id));
      for (const [command, text] of [
        ['activation get publish --last', id],
        ['activation get --last', id],
        ['activation logs --last', 'hello undefined!'],
        ['activation result --last', 'hello, undefined!'],
      ] as const) {
        expect(await shell.prints(command)).toContain(text);
      }
      await shell.prints('action delete lastName');
    },
  },
  {
    fact: 'log lines are told without time and stream',
    stands: `${suite}ensure timestamp and stream are stripped from log lines`,
    run: async (t) => {
      const { shell, name } = await withAction(
        t,
        "function main() { console.log('this is stdout'); console.error('this is stderr'); }",
      );
      const { activationId } = await recordOf(shell, [name]);
      const lines = (await shell.prints(`activation logs --strip ${activationId}`)).split('\n');
      expect(lines.sort()).toEqual(['', 'this is stderr', 'this is stdout']);
    },
  },
  {
    fact: 'a record has all of its fields, empty ones too',
    stands: `${suite}ensure keys are not omitted from activation record`,
    run: async (t) => {
      const { shell, name } = await withAction(t, 'function main(args) { return args; }');
      const { activationId } = await recordOf(shell, [name]);
      const record = await shell.json<Activation>(`activation get ${activationId}`);
      expect(record.start).toBeGreaterThan(0);
      expect(record.end).toBeGreaterThan(0);
      expect(record.response).toMatchObject({ status: 'success', success: true, result: {} });
      expect(record.logs).toEqual([]);
      expect(record.annotations).toBeDefined();
    },
  },
  {
    fact: 'a record has path and limits of its action',
    stands: `${suite}write the action-path and the limits to the annotations`,
    needs: 'concurrency',
    run: async (t) => {
      const limits = ['-m', '512', '-t', '60000', '-l', '1', '-c', '1'];
      const { shell, name } = await withAction(t, echo, limits);
      const { annotations, response } = await recordOf(shell, [name, '-p', 'payload', 'this is a test']);
      expect(response.status).toBe('success');
      expect(valueOf(annotations, 'path')).toMatch(new RegExp(`.*/${name}$`));
      expect(valueOf(annotations, 'limits')).toEqual({ timeout: 60_000, memory: 512, logs: 1, concurrency: 1 });
    },
  },
  {
    fact: 'an action is told of itself',
    stands: `${suite}invoke an action receiving context properties`,
    run: async (t) => {
      const { shell, name } = await withAction(t, context, ['-a', 'provide-api-key', 'true']);
      const start = Date.now();
      const { response, activationId } = await recordOf(shell, [name]);
      const { api_key, namespace, action_name, activation_id, deadline } = response.result as Record<string, string>;
      expect({ api_key, namespace, action_name, activation_id }).toEqual({
        api_key: t.user.auth,
        namespace: t.namespace,
        action_name: `/${t.namespace}/${name}`,
        activation_id: activationId,
      });
      expect(Number(deadline)).toBeGreaterThanOrEqual(start);
    },
  },
  {
    fact: 'a result is told alone',
    stands: `${suite}invoke an action successfully with options --blocking and --result`,
    run: async (t) => {
      const { shell, name } = await withAction(t, echo);
      const printed = await shell.prints(`action invoke ${name} --blocking --result -p hello Robert`);
      expect(JSON.parse(printed)).toEqual({ hello: 'Robert' });
    },
  },
  {
    fact: 'a deadline is kept by who looks at it, and a run that hangs does not spoil the next',
    stands: [
      `${suite}invoke an action that returns a result by the deadline`,
      `${suite}invoke an action twice, where the first times out but the second does not and should succeed`,
    ],
    run: async (t) => {
      const { shell, name } = await withAction(t, beforeDeadline, ['-t', '3000']);
      const hung = await recordOf(shell, [name, '-p', 'forceHang', 'true']);
      expect(hung.response).toMatchObject({
        status: 'action developer error',
        result: { error: 'The action exceeded its time limits of 3000 milliseconds.' },
      });
      const good = await recordOf(shell, [name, '-p', 'forceHang', 'false']);
      expect(good.response).toMatchObject({ status: 'success', result: { timedout: true } });
    },
  },
];

/** Output of `wsk` about runs and their records. */
export const wskActivationCases = table('wsk: actions', 'core/cli/test/WskCliBasicUsageTests.scala', rows);
