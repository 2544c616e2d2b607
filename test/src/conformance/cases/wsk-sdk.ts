import { readFile, stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import { until } from '../../support/running-platform.js';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import { exits, WskShell } from '../wsk-shell.js';

const suite = 'WskSdkTests: ';

const noCert = 'The Cert file is not configured. Please configure the missing Cert file.';
const noKey = 'The Key file is not configured. Please configure the missing Key file.';
const noPair = 'Unable to load the X509 key pair due to the following reason';

const rows: Row[] = [
  {
    fact: 'the SDK is fetched by HTTPS from a host without a scheme',
    stands: [
      `${suite}prefix https to apihost if no scheme given`,
      `${suite}not prefix https to http apihost`,
      `${suite}not double prefix https to https apihost`,
    ],
    run: async (t) => {
      const shell = await WskShell.open(t, {});
      for (const [host, url] of [
        ['localhost:54321', 'https://localhost:54321/'],
        ['http://localhost:54321', 'http://localhost:54321/'],
        ['https://localhost:54321', 'https://localhost:54321/'],
      ] as const) {
        await shell.fails(`--apihost ${host} sdk install docker`, exits.error, new RegExp(`Get "?${url}`, 'i'));
      }
    },
  },
  {
    fact: 'the skeleton of a Docker action is unpacked',
    stands: `${suite}download docker action sdk`,
    run: async (t) => {
      const shell = await WskShell.open(t);
      const installed = 'The docker skeleton is now installed at the current directory.';
      expect(await shell.prints('sdk install docker')).toContain(installed);
      const dockerfile = await readFile(join(shell.home, 'dockerSkeleton/Dockerfile'), 'utf8');
      expect(dockerfile.split('\n')[1]).toBe('FROM openwhisk/dockerskeleton');
      const { mode } = await stat(join(shell.home, 'dockerSkeleton/buildAndPush.sh'));
      expect(mode & 0o100).not.toBe(0);
    },
  },
  {
    fact: 'completion for bash is written to a file, or told',
    stands: [
      `${suite}install the bash auto-completion bash script`,
      `${suite}print bash command completion script to STDOUT`,
    ],
    run: async (t) => {
      const shell = await WskShell.open(t);
      expect(await shell.prints('sdk install bashauto')).toContain('is installed in the current directory');
      const written = await readFile(join(shell.home, 'wsk_cli_bash_completion.sh'), 'utf8');
      expect(written).toContain('bash completion for wsk');
      expect(await shell.prints('sdk install bashauto --stdout')).toContain('bash completion for wsk');
    },
  },
  {
    fact: 'the SDK is not fetched with half of a certificate and its key',
    stands: [
      `${suite}return configure the missing Key file`,
      `${suite}return configure the missing Cert file`,
      `${suite}return unable to load the X509 key pair with both Cert and Key files missing`,
    ],
    run: async (t) => {
      for (const [properties, text] of [
        [{ CERT: 'empty.pem' }, noKey],
        [{ KEY: 'empty.pem' }, noCert],
        [{ CERT: 'empty.pem', KEY: 'empty.pem' }, noPair],
      ] as const) {
        const shell = await WskShell.open(t, properties);
        await shell.write('empty.pem', '');
        await shell.fails(`sdk install docker --apihost ${t.user.url} --apiversion v1`, exits.error, text);
      }
    },
  },
  {
    fact: 'a kind and an image exclude each other',
    source: 'system/basic/WskCliActionTests.scala',
    stands:
      'WskCliActionTests: not be able to use --kind and --docker at the same time when running action create or update',
    run: async (t) => {
      const shell = await WskShell.open(t);
      for (const verb of ['create', 'update']) {
        const command = `action ${verb} ${t.name('action')} hello.js --kind nodejs:6 --docker mydockerimagename`;
        await shell.fails(command, exits.notAllowed, 'Cannot specify both --kind and --docker at the same time');
      }
    },
  },
  {
    fact: 'polling asks for what came since it asked last',
    source: 'system/basic/WskCliActivationTests.scala',
    stands: 'WskCliActivationTests: change the since time as it polls',
    run: async (t) => {
      const shell = await WskShell.open(t);
      const name = await shell.create('action', t.name('action'));
      // A proxy between wsk and the server that records the `since` parameter of requests.
      const since = new Set<string>();
      const proxy = createServer((request, response) => {
        const { searchParams } = new URL(request.url ?? '/', 'http://proxy');
        const asked = searchParams.get('since');
        if (asked !== null) since.add(asked);
        const { authorization = '' } = request.headers;
        void fetch(t.user.url + request.url, { headers: { authorization } }).then(async (answer) => {
          response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text());
        });
      });
      await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
      t.atEnd(() => new Promise((resolve) => proxy.close(resolve)));
      const { port } = proxy.address() as AddressInfo;
      const polling = shell.prints(`activation poll ${name} --exit 6 --apihost http://127.0.0.1:${port}`);
      await until('it polls', () => Promise.resolve(since.size > 0));
      const ids: string[] = [];
      for (let runs = 0; runs < 3; runs += 1) {
        const { activationId } = await t.run(name, { payload: 'test' });
        ids.push(activationId);
        await new Promise((resolve) => setTimeout(resolve, 1200));
      }
      const polled = await polling;
      expect(ids.filter((id) => polled.includes(id)).length).toBeGreaterThan(1);
      expect(since.size).toBeGreaterThan(1);
    },
  },
];

/** SDKs that `wsk` downloads, and single cases of other suites. */
export const wskSdkCases = table('wsk: sdk', 'system/basic/WskSdkTests.scala', rows);
