import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { join } from 'node:path';
import { errorWithHint, usageHint } from './cases.js';
import { startFakeOpenWhisk, type FakeOpenWhisk } from './fake-openwhisk.js';
import { certificate, privateKey } from './self-signed.js';
import { runWsk, withFolder, type WskResult } from './wsk-process.js';

const listing = 'GET /api/v1/namespaces/_/actions?limit=30&skip=0';

function list(host: string, ...flags: string[]): Promise<WskResult> {
  return withFolder(async (directory) => {
    await writeFile(join(directory, 'cert.pem'), certificate);
    await writeFile(join(directory, 'key.pem'), privateKey);
    return runWsk(['--apihost', host, '--auth', 'u:k', ...flags, 'action', 'list'], { directory });
  });
}

describe('HTTPS with a self-signed certificate', () => {
  let server: FakeOpenWhisk;
  beforeAll(async () => {
    server = await startFakeOpenWhisk({ cert: certificate, key: privateKey });
  });
  afterAll(() => server.close());

  test('is refused', async () => {
    server.expect([]);
    const result = await list(server.url);
    expect(result).toMatchObject({ code: 3, stdout: '' });
    expect(result.stderr).toMatch(
      /^error: Unable to obtain the list of actions for namespace 'default': Get "https:.*cert/,
    );
    expect(server.requests).toEqual([]);
  });

  test('is accepted with -i, also for a host without https://', async () => {
    server.expect([[200, []]]);
    expect(await list(server.url.replace('https://', ''), '-i')).toEqual({ code: 0, stdout: 'actions\n', stderr: '' });
    expect(server.requests.map(({ line, clientCertificate }) => [line, clientCertificate])).toEqual([
      [listing, undefined],
    ]);
  });

  test('is shown the client certificate of --cert and --key', async () => {
    server.expect([[200, []]]);
    const result = await list(server.url, '-i', '--cert', 'cert.pem', '--key', 'key.pem');
    expect(result).toEqual({ code: 0, stdout: 'actions\n', stderr: '' });
    expect(server.requests.map(({ clientCertificate }) => clientCertificate)).toEqual(['localhost']);
  });

  test.each([
    ['cert', 'Key'],
    ['key', 'Cert'],
  ])('--%s alone is not enough', async (given, missing) => {
    expect(await list(server.url, `--${given}`, `${given}.pem`)).toEqual({
      code: 1,
      stdout: '',
      stderr: errorWithHint(
        `Unable to initialize server connection: The ${missing} file is not configured. Please configure the missing ${missing} file.\n`,
      ),
    });
  });

  test('a certificate that is not there is an error', async () => {
    const result = await list(server.url, '-i', '--cert', 'none', '--key', 'none');
    expect(result.code).toBe(1);
    expect(result.stderr).toMatch(/^error: Unable to initialize server connection: Unable to load the X509 key pair/);
  });
});

describe('plain HTTP', () => {
  let server: FakeOpenWhisk;
  beforeAll(async () => {
    server = await startFakeOpenWhisk();
  });
  afterAll(() => server.close());

  const answer = { big: 'x'.repeat(2000), Password: 'secret' };

  test('a host without http:// is taken for HTTPS, and the error says what to write', async () => {
    const { code, stderr } = await list(server.url.replace('http://', ''));
    expect(code).toBe(3);
    expect(stderr).toContain('http: server gave HTTP response to HTTPS client');
  });

  test('-v prints request and answer, the long body cut', async () => {
    server.expect([[200, [answer]]]);
    const { code, stdout } = await list(server.url, '-v');
    expect(code).toBe(0);
    const shown = stdout.replace(/OpenWhisk-CLI[^"]*/, 'AGENT').replace(/"Date": \[\s+"[^"]*"/, '"Date": [ "D"');
    expect(shown.split('\n').map((line) => (line.length > 500 ? `${line.length} characters` : line))).toEqual([
      'REQUEST:',
      `[GET]\t${server.url}/api/v1/namespaces/_/actions?limit=30&skip=0`,
      'Req Headers',
      '{',
      '  "Authorization": [',
      '    "Basic dTpr"',
      '  ],',
      '  "User-Agent": [',
      '    "AGENT"',
      '  ]',
      '}',
      'RESPONSE:Got response with code 200',
      'Resp Headers',
      '{',
      '  "Connection": [',
      '    "keep-alive"',
      '  ],',
      '  "Content-Length": [',
      `    "${JSON.stringify([answer]).length}"`,
      '  ],',
      '  "Content-Type": [',
      '    "application/json"',
      '  ],',
      '  "Date": [ "D"',
      '  ],',
      '  "Keep-Alive": [',
      '    "timeout=5"',
      '  ]',
      '}',
      `Response body size is ${JSON.stringify([answer]).length} bytes`,
      'Body exceeds 1000 bytes and will be truncated',
      'Response body received:',
      '1003 characters',
      'actions',
      `${'//'.padEnd(70)} private `,
      '',
    ]);
  });

  test('-d and WSK_CLI_DEBUG print whole bodies, without passwords', async () => {
    server.expect([
      [200, [answer]],
      [200, [answer]],
    ]);
    const flag = await list(server.url, '-d');
    const variable = await withFolder((directory) =>
      runWsk(['--apihost', server.url, '--auth', 'u:k', 'action', 'list'], {
        directory,
        environment: { WSK_CLI_DEBUG: '1' },
      }),
    );
    for (const { stdout } of [flag, variable]) {
      expect(stdout).toContain(answer.big);
      expect(stdout).toContain('"password": "******"');
      expect(stdout).not.toContain('secret');
    }
  });

  test('without a key nothing is sent', async () => {
    server.expect([]);
    const result = await withFolder((directory) => runWsk(['--apihost', server.url, 'action', 'list'], { directory }));
    expect(result).toEqual({
      code: 2,
      stdout: '',
      stderr: errorWithHint(
        "Unable to obtain the list of actions for namespace 'default': Unable to create HTTP request for GET " +
          "'actions?limit=30&skip=0': Unable to add the HTTP authentication header: Authorization key is not configured (--auth is required)",
      ),
    });
    expect(server.requests).toEqual([]);
  });

  test('an answer of success that is no JSON is an error', async () => {
    server.expect([[200, '<html>']]);
    const result = await list(server.url);
    expect(result.code).toBe(1);
    expect(result.stderr).toContain(
      "The server's answer is not JSON: invalid character '<' looking for beginning of value",
    );
  });
});

test('a refused connection exits with 3', async () => {
  expect(await list('http://127.0.0.1:1')).toEqual({
    code: 3,
    stdout: '',
    stderr: errorWithHint(
      `Unable to obtain the list of actions for namespace 'default': Get "http://127.0.0.1:1${listing.slice(4)}": dial tcp 127.0.0.1:1: connect: connection refused`,
    ),
  });
});

test('an unknown host exits with 3', async () => {
  const result = await list('http://no-such-host.invalid');
  expect(result.code).toBe(3);
  expect(result.stderr).toContain('dial tcp: lookup no-such-host.invalid');
});

test('a connection closed without an answer exits with 3', async () => {
  const server: Server = createServer((socket) => socket.once('data', () => socket.destroy()));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const result = await list(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  await new Promise((resolve) => server.close(resolve));
  expect(result.code).toBe(3);
  expect(result.stderr).toMatch(new RegExp(`: EOF\n${usageHint}\n$`));
});
