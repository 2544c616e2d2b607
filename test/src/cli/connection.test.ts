import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { generateKeyPairSync } from 'node:crypto';
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
    const other = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
    await writeFile(join(directory, 'other.pem'), other.export({ type: 'pkcs8', format: 'pem' }));
    await writeFile(join(directory, 'cut.pem'), privateKey.replace(/(KEY-----\n).{20}/, '$1'));
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

  test.each([
    ['none.pem', 'key.pem', 'open none.pem: no such file or directory'],
    ['cert.pem', '.', 'read .: is a directory'],
    ['key.pem', 'key.pem', 'tls: failed to find any PEM data in certificate input'],
    ['cert.pem', 'cert.pem', 'tls: failed to find any PEM data in key input'],
    ['cert.pem', 'other.pem', 'tls: private key does not match public key'],
    ['cert.pem', 'cut.pem', 'tls: failed to parse private key'],
  ])('the certificate %s with the key %s: %s', async (cert, key, reason) => {
    const why = `Unable to load the X509 key pair due to the following reason: ${reason}`;
    expect(await list(server.url, '-i', '--cert', cert, '--key', key)).toEqual({
      code: 1,
      stdout: '',
      stderr: errorWithHint(`Unable to initialize server connection: ${why}`),
    });
  });
});

describe('redirects', () => {
  let server: FakeOpenWhisk;
  let other: FakeOpenWhisk;
  beforeAll(async () => {
    [server, other] = await Promise.all([startFakeOpenWhisk(), startFakeOpenWhisk()]);
  });
  afterAll(() => Promise.all([server.close(), other.close()]));

  const run = (line: string): Promise<WskResult> =>
    withFolder((directory) => runWsk(['--apihost', server.url, '--auth', 'u:k', ...line.split(' ')], { directory }));
  const to = (location: string): Record<string, string> => ({ location });

  test.each([301, 302, 303, 307, 308])('%s of a list is followed with the key', async (status) => {
    server.expect([[status, {}, to(`${other.url}/elsewhere`)]]);
    other.expect([[200, []]]);
    expect(await run('action list')).toEqual({ code: 0, stdout: 'actions\n', stderr: '' });
    expect(other.requests).toMatchObject([{ line: 'GET /elsewhere', headers: { authorization: 'Basic dTpr' } }]);
  });

  test.each([307, 308])('%s of an invocation keeps its method and body', async (status) => {
    server.expect([
      [status, {}, to('/moved')],
      [202, { activationId: 'a' }],
    ]);
    expect(await run('action invoke hello --param name Ada')).toMatchObject({ code: 0, stderr: '' });
    expect(server.requests[1]?.line).toBe('POST /moved {"name":"Ada"}');
  });

  test('301 of a creation is followed with GET and no body', async () => {
    server.expect([
      [301, {}, to('/moved')],
      [200, {}],
    ]);
    await run('trigger create t');
    expect(server.requests.map(({ line }) => line.split(' ')[0])).toEqual(['PUT', 'GET']);
    expect(server.requests[1]).toMatchObject({ line: 'GET /moved', headers: { authorization: 'Basic dTpr' } });
    expect(server.requests[1]?.headers['content-type']).toBeUndefined();
  });

  test('the key does not follow to another host', async () => {
    server.expect([[308, {}, to(`${other.url.replace('localhost', '127.0.0.1')}/elsewhere`)]]);
    other.expect([[200, []]]);
    expect(await run('action list')).toMatchObject({ code: 0 });
    expect(other.requests.map(({ line, headers }) => [line, headers.authorization])).toEqual([
      ['GET /elsewhere', undefined],
    ]);
  });

  test('a circle ends with the tenth request', async () => {
    server.expect(Array.from({ length: 10 }, () => [301, {}, to('/again')]));
    const { code, stderr } = await run('action list');
    expect([code, server.requests.length]).toEqual([3, 10]);
    expect(stderr).toContain(`Get "${server.url}/again": stopped after 10 redirects`);
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
