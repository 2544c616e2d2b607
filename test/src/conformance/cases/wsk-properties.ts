import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import { exits, WskShell } from '../wsk-shell.js';

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
          expect(await readFile(join(shell.home, '.wskprops'), 'utf8')).toContain(`APIHOST=${scheme}${host}\n`);
        }
      }
    },
  },
];

/** The configuration of `wsk` in its properties. */
export const wskPropertyCases = table('wsk: properties', 'core/cli/test/WskConfigTests.scala', rows);
