import { expect } from '@jest/globals';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import { echo } from '../functions.js';
import { valueOf } from '../trial.js';
import { exits, WskShell } from '../wsk-shell.js';
import { withAction, sorted, web, runtime, noKey, kind } from '../wsk-usage.js';
import type { Pairs } from '../wsk-usage.js';

const suite = 'WskCliBasicUsageTests: ';

const annotationsOf = (shell: WskShell, name: string): Promise<Pairs> =>
  shell.json<Pairs>(['action', 'get', name, 'annotations']);

const rows: Row[] = [
  {
    fact: '--web sets annotations, whatever its case',
    stands: `${suite}ensure --web flags set the proper annotations`,
    run: async (t) => {
      const { shell, name } = await withAction(t, echo);
      for (const flag of ['true', 'faLse', 'tRue', 'nO', 'yEs', 'no', 'raw', 'NO', 'Raw']) {
        await shell.prints(['action', 'update', name, 'code.js', '--web', flag, ...kind]);
        const expected = web(/^(true|yes)$/i.test(flag), /^raw$/i.test(flag));
        expect(sorted(await annotationsOf(shell, name))).toEqual(sorted([...expected, ...runtime, ...noKey]));
      }
    },
  },
  {
    fact: '--web keeps annotations, and takes new ones instead',
    stands: `${suite}ensure action update with --web flag only copies existing annotations when new annotations are not provided`,
    run: async (t) => {
      const given = ['-a', 'createKey', 'createValue', '-a', 'origKey', 'origValue', ...kind];
      const { shell, name } = await withAction(t, echo, given);
      const base = [...web(true), ...runtime, ...noKey, { key: 'createKey', value: 'createValue' }];
      await shell.prints(['action', 'update', name, 'code.js', '--web', 'true', ...kind]);
      const first = await annotationsOf(shell, name);
      expect(sorted(first)).toEqual(sorted([...base, { key: 'origKey', value: 'origValue' }]));
      const changed = ['-a', 'updateKey', 'updateValue', '-a', 'origKey', 'overwrittenValue'];
      await shell.prints(['action', 'update', name, 'code.js', '--web', 'true', ...changed, ...kind]);
      expect(sorted(await annotationsOf(shell, name))).toEqual(
        sorted([...base, { key: 'updateKey', value: 'updateValue' }, { key: 'origKey', value: 'overwrittenValue' }]),
      );
    },
  },
  {
    fact: 'an update makes a web action that was not there',
    stands: `${suite}ensure action update creates an action with --web flag`,
    run: async (t) => {
      const shell = await WskShell.open(t);
      const name = t.name('action');
      shell.removes('action', name);
      await shell.prints(['action', 'update', name, 'hello.js', '--web', 'true', ...kind]);
      expect(sorted(await annotationsOf(shell, name))).toEqual(sorted([...web(true), ...runtime, ...noKey]));
    },
  },
  {
    fact: '--web and --web-secure are refused where they mean nothing',
    stands: [
      `${suite}reject action create and update with invalid --web flag input`,
      `${suite}reject action create and update when --web-secure used on a non-web action`,
    ],
    run: async (t) => {
      const { shell, name } = await withAction(t, echo);
      const invalid =
        "Invalid argument 'bogus' for --web flag. Valid input consist of 'yes', 'true', 'raw', 'false', or 'no'.";
      const other = t.name('action');
      await shell.fails(`action create ${other} code.js --web bogus`, exits.misuse, invalid);
      await shell.fails(`action update ${other} code.js --web bogus`, exits.misuse, invalid);
      const insecure = 'The --web-secure option is only valid when the --web option is enabled.';
      await shell.fails(`action create ${other} code.js --web-secure true`, exits.misuse, insecure);
      await shell.fails(`action update ${name} code.js --web-secure true`, exits.misuse, insecure);
      await shell.prints(`action update ${name} code.js --web true`);
      await shell.fails(`action update ${name} code.js --web false --web-secure true`, exits.misuse, insecure);
    },
  },
  {
    fact: '--web-secure makes a secret once, or takes one',
    stands: `${suite}generate a require-whisk-annotation --web-secure used on a web action`,
    run: async (t) => {
      const secure = ['--web', 'true', '--web-secure'];
      const { shell, name } = await withAction(t, echo, [...secure, 'true', ...kind]);
      const secretOf = async (): Promise<unknown> => valueOf(await annotationsOf(shell, name), 'require-whisk-auth');
      expect(typeof (await secretOf())).toBe('number');
      const update = (secret: string): Promise<string> =>
        shell.prints(['action', 'update', name, 'code.js', ...secure, secret, ...kind]);
      await update('my-secret');
      expect(await annotationsOf(shell, name)).toEqual(
        expect.arrayContaining([...runtime, ...web(true), { key: 'require-whisk-auth', value: 'my-secret' }]),
      );
      await update('true');
      const secret = await secretOf();
      expect(typeof secret).toBe('number');
      await update('true');
      expect(await secretOf()).toBe(secret);
    },
  },
  {
    fact: '--web-secure false removes the secret',
    stands: `${suite}remove existing require-whisk-annotation when --web-secure is false`,
    run: async (t) => {
      const { shell, name } = await withAction(t, echo, ['--web', 'true', '--web-secure', 'my-secret']);
      expect(valueOf(await annotationsOf(shell, name), 'require-whisk-auth')).toBe('my-secret');
      await shell.prints(`action update ${name} code.js --web true --web-secure false`);
      expect(valueOf(await annotationsOf(shell, name), 'require-whisk-auth')).toBeUndefined();
    },
  },
  {
    fact: '--web-secure keeps annotations, and takes new ones instead',
    stands: `${suite}ensure action update with --web-secure flag only copies existing annotations when new annotations are not provided`,
    run: async (t) => {
      const given = ['--web', 'true', '-a', 'createKey', 'createValue', '-a', 'origKey', 'origValue', ...kind];
      const { shell, name } = await withAction(t, echo, given);
      const base = [...runtime, ...web(true), { key: 'require-whisk-auth', value: 'my-secret' }];
      const update = ['action', 'update', name, 'code.js', '--web-secure', 'my-secret', ...kind];
      await shell.prints(update);
      const created = [
        { key: 'createKey', value: 'createValue' },
        { key: 'origKey', value: 'origValue' },
      ];
      expect(await annotationsOf(shell, name)).toEqual(expect.arrayContaining([...base, ...created]));
      await shell.prints([...update, '-a', 'updateKey', 'updateValue', '-a', 'origKey', 'overwrittenValue']);
      const updated = [
        { key: 'updateKey', value: 'updateValue' },
        { key: 'origKey', value: 'overwrittenValue' },
      ];
      expect(await annotationsOf(shell, name)).toEqual(expect.arrayContaining([...base, ...updated]));
    },
  },
];

/** The annotations that `wsk` makes of --web and --web-secure. */
export const wskWebActionCases = table('wsk: actions', 'core/cli/test/WskCliBasicUsageTests.scala', rows);
