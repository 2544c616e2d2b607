import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import { certificate, privateKey } from '../../cli/self-signed.js';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import type { Trial } from '../trial.js';
import { exits, WskShell } from '../wsk-shell.js';

/** The content of `.wskprops`. */
const propertiesOf = ({ home }: WskShell): Promise<string> => readFile(join(home, '.wskprops'), 'utf8');

/** A shell whose properties name a certificate, a key or both; the files exist and are empty. */
async function withPair(t: Trial, properties: readonly ('CERT' | 'KEY')[]): Promise<WskShell> {
  const shell = await WskShell.open(t, Object.fromEntries(properties.map((name) => [name, `${name}.pem`])));
  for (const name of properties) await shell.write(`${name}.pem`, '');
  return shell;
}

/** A command that fails because of the certificate and key in the properties. */
function refusesPair(command: string, stands: string, properties: readonly ('CERT' | 'KEY')[], problem: string): Row {
  return {
    fact: `'${command.split(' --')[0]}' with ${properties.join(' and ')} of no use: ${problem}`,
    stands: `WskConfigTests: ${stands}`,
    run: async (t) => {
      const shell = await withPair(t, properties);
      await shell.fails(`${command} --apihost ${t.user.url} --apiversion v1`, exits.error, problem);
    },
  };
}

const noHost = 'The API host is not valid: An API host must be provided.';
const noCert = 'The Cert file is not configured. Please configure the missing Cert file.';
const noKey = 'The Key file is not configured. Please configure the missing Key file.';
const noPair = 'Unable to load the X509 key pair due to the following reason';

const rows: Row[] = [
  {
    fact: 'no build of the API can be told of a host that is not there',
    stands: 'WskConfigTests: fail to show api build when setting apihost to bogus value',
    run: async (t) => {
      const shell = await WskShell.open(t);
      await shell.prints('property set -i --apihost xxxx.yyyy');
      const { stdout } = await shell.fails('property get --apibuild -i', exits.network, 'Unable to obtain API build');
      expect(stdout).toMatch(/whisk API build\s*Unknown/);
    },
  },
  {
    fact: 'hosts are set with and without a scheme, and written as they were given',
    stands: 'WskConfigTests: set api host with or without http prefix',
    run: async (t) => {
      const shell = await WskShell.open(t);
      for (const scheme of ['', 'http://', 'https://']) {
        for (const host of ['10', '10:123', 'aaa', 'aaa:123']) {
          const printed = await shell.prints(['property', 'set', '--apihost', scheme + host]);
          expect(printed.trim()).toBe(`ok: whisk API host set to ${scheme}${host}`);
          expect(await propertiesOf(shell)).toContain(`APIHOST=${scheme}${host}\n`);
        }
      }
    },
  },
  {
    fact: 'no host is known where WSK_CONFIG_FILE is empty',
    stands: 'WskConfigTests: use default cli configuration when an empty string WSK_CONFIG_FILE is supplied',
    run: async (t) => {
      const shell = await WskShell.open(t, {});
      const { code, stderr } = await shell.run('property get -i', { WSK_CONFIG_FILE: '' });
      expect([code, stderr]).toEqual([exits.error, expect.stringContaining(noHost)]);
    },
  },
  {
    fact: 'properties that are unset are empty',
    stands: 'WskConfigTests: validate default property values',
    run: async (t) => {
      const shell = await WskShell.open(t);
      const printed = await shell.prints('property unset --auth --cert --key --apihost --apiversion');
      for (const name of ['whisk auth', 'client cert', 'client key', 'whisk API host', 'whisk API version']) {
        expect(printed).toContain(`ok: ${name} unset`);
      }
      for (const [flag, name] of [
        ['auth', 'whisk auth'],
        ['cert', 'client cert'],
        ['key', 'client key'],
        ['apihost', 'whisk API host'],
      ]) {
        expect(await shell.prints(`property get --${flag}`)).toMatch(new RegExp(`${name}\\s*$`, 'i'));
      }
    },
  },
  {
    fact: 'a command that needs a key says so where there is none',
    stands: 'WskConfigTests: reject authenticated command when no auth key is given',
    run: async (t) => {
      const shell = await WskShell.open(t, {});
      const { stderr } = await shell.fails(`list --apihost ${t.user.url} --apiversion v1`, exits.misuse, /usage[:.]/);
      expect(stderr).toContain('--auth is required');
    },
  },
  {
    fact: 'properties of a server cannot be got without a host',
    stands: 'WskConfigTests: reject a command when the API host is not set',
    run: async (t) => {
      const shell = await WskShell.open(t, {});
      await shell.fails('property get -i', exits.error, noHost);
    },
  },
  {
    fact: 'the build of the API and its number are told',
    stands: ['WskConfigTests: show api build details', 'WskConfigTests: show api build version using property file'],
    run: async (t) => {
      const shell = await WskShell.open(t, {});
      await shell.prints(`property set -i --apihost ${t.user.url} --apiversion v1`);
      const { code, stdout, stderr } = await shell.run('property get --apibuild --apibuildno -i');
      expect([code, stderr]).toEqual([0, '']);
      expect(stdout).toMatch(/whisk API build\s+20.*/i);
      expect(stdout).toMatch(/whisk API build number\s+.*/i);
      expect(await shell.prints('property get --apibuild -i')).toMatch(/whisk API build\s+20.*/i);
    },
  },
  {
    fact: 'the build of the API is told of a host with its scheme',
    stands: 'WskConfigTests: show api build using explicit protocol for apihost',
    run: async (t) => {
      const shell = await WskShell.open(t, {});
      expect(t.user.url).toMatch(/^https?:/);
      await shell.prints(`property set --apihost ${t.user.url}`);
      const { code, stdout, stderr } = await shell.run('property get --apibuild -i');
      expect([code, stderr]).toEqual([0, '']);
      expect(stdout).toMatch(/whisk API build\s+20.*/i);
    },
  },
  {
    fact: 'white space and comments after a value are not part of it',
    stands: 'WskConfigTests: get apihost removing any trailing white spaces and line comments',
    run: async (t) => {
      const shell = await WskShell.open(t, { APIHOST: 'http://localhost:10001    # This is a comment!   ' });
      expect(await shell.prints('property get -i --apihost')).toMatch(/whisk API host\s+http:\/\/localhost:10001\n?$/);
    },
  },
  {
    fact: 'host and key are set with one command',
    stands: 'WskConfigTests: set apihost, auth',
    run: async (t) => {
      const shell = await WskShell.open(t, {});
      const { url, auth } = t.user;
      const printed = await shell.prints(`property set -i --apihost ${url} --auth ${auth}`);
      expect(printed).toContain(`ok: whisk API host set to ${url}`);
      expect(printed).toContain('ok: whisk auth set');
      expect(await shell.prints('namespace list -i')).toContain(t.namespace);
    },
  },
  {
    fact: 'a key is written to the properties',
    stands: 'WskConfigTests: set auth in property file',
    run: async (t) => {
      const shell = await WskShell.open(t, {});
      await shell.prints('property set --auth testKey');
      expect(await propertiesOf(shell)).toContain('AUTH=testKey');
    },
  },
  {
    fact: 'all properties are set with one command',
    stands: 'WskConfigTests: set multiple property values with single command',
    run: async (t) => {
      const shell = await WskShell.open(t, {});
      const host = 'openwhisk.ng.bluemix.net';
      await shell.write('c.pem', certificate);
      await shell.write('k.pem', privateKey);
      const printed = await shell.prints(
        `property set --auth testKey --cert c.pem --key k.pem --apihost ${host} --apiversion v1`,
      );
      for (const name of ['whisk auth', 'client cert', 'client key', 'whisk API host', 'whisk API version']) {
        expect(printed).toContain(`ok: ${name} set`);
      }
      const properties = await propertiesOf(shell);
      for (const line of ['AUTH=testKey', `APIHOST=${host}`, 'APIVERSION=v1']) expect(properties).toContain(line);
    },
  },
  {
    fact: 'a trigger is created with what the properties have',
    stands: 'WskConfigTests: create a trigger using property file',
    run: async (t) => {
      const shell = await WskShell.open(t, {});
      await shell.prints(`property set --auth ${t.user.auth} --apihost ${t.user.url} --apiversion v1`);
      const name = t.name('trigger');
      shell.removes('trigger', name);
      expect(await shell.prints(['-i', 'trigger', 'create', name])).toBe(`ok: created trigger ${name}\n`);
    },
  },
  refusesPair('property get --apibuild', 'return configure the missing Cert file', ['KEY'], noCert),
  refusesPair('property get --apibuild', 'return configure the missing Key file', ['CERT'], noKey),
  refusesPair(
    'property get --apibuild',
    'return unable to load the X509 key pair with both Cert and Key files missing',
    ['CERT', 'KEY'],
    noPair,
  ),
  refusesPair('action list', 'return configure the missing Cert file for action', ['KEY'], noCert),
  refusesPair('action list', 'return configure the missing Key file for action', ['CERT'], noKey),
  refusesPair(
    'action list',
    'return unable to load the X509 key pair with both Cert and Key files missing for action',
    ['CERT', 'KEY'],
    noPair,
  ),
];

/** Properties of `wsk`. */
export const wskPropertyCases = table('wsk: properties', 'core/cli/test/WskConfigTests.scala', rows);
