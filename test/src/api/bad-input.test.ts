import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { putIdentity } from '@gpuwhisk/controller/authentication/authentication';
import { actionPath, alice, basic, errorOf, hello, startApi } from './harness.js';
import type { Api } from './harness.js';

const malformed = 'The request content was malformed:\n';
let api: Api;
beforeAll(async () => {
  api = await startApi({ limits: { maxCodeBytes: 50_000, maxParametersBytes: 5_000, maxPayloadBytes: 5_000 } });
});
afterAll(() => api.close());

const exec = (fields: object): object => ({ exec: fields });
const node = { kind: 'nodejs:20', code: 'x' };
const limits = (fields: object): object => ({ exec: node, limits: fields });
const padding = (bytes: number): string => 'p'.repeat(bytes);

describe('names', () => {
  test.each([
    ['bad!name', 'The name of the entity contains illegal characters.'],
    [' leading', 'The name of the entity contains illegal characters.'],
    ['trailing ', 'The name of the entity contains illegal characters.'],
    ['-dash', 'The name of the entity contains illegal characters.'],
    ['ünïcode', 'The name of the entity contains illegal characters.'],
    ['new\nline', 'The name of the entity contains illegal characters.'],
    ['a/b!', 'The name of the entity contains illegal characters.'],
    ['x'.repeat(257), 'Name segement longer than allowed: 257 > 256.'],
  ])('%j is refused', async (name, text) => {
    for (const method of ['GET', 'PUT', 'POST', 'DELETE']) {
      const reply = await api.request(method, actionPath(name), method === 'PUT' ? { body: hello } : {});
      expect([reply.status, errorOf(reply)]).toEqual([400, text]);
    }
  });

  test('a percent sign that encodes nothing is refused', async () => {
    const reply = await api.request('GET', '/api/v1/namespaces/_/actions/%zz');
    expect([reply.status, errorOf(reply)]).toEqual([400, 'The name of the entity contains illegal characters.']);
  });

  test.each([
    ['bad!', 'The namespace contains illegal characters.'],
    ['n'.repeat(300), 'Namespace longer than allowed: 300 > 256.'],
  ])('namespace %s is refused', async (namespace, text) => {
    for (const path of ['actions', 'actions/x', 'activations', 'limits']) {
      const reply = await api.request('GET', `/api/v1/namespaces/${namespace}/${path}`);
      expect([reply.status, errorOf(reply)]).toEqual([400, text]);
    }
  });
});

describe('what an action may be', () => {
  const valid = "'nodejs:20', 'nodejs:6', 'python:3.11', 'swift:5.3', 'java:8', 'sequence', 'blackbox'";
  test.each([
    ['an array', [], "Object expected in field 'exec'"],
    ['a string', '"text"', "Object expected in field 'exec'"],
    ['null', 'null', "Object expected in field 'exec'"],
    ['exec that is no object', { exec: 1 }, 'JSON object expected'],
    ['no kind', exec({ code: 'x' }), "'kind' must be a string defined in 'exec'"],
    ['kind 1', exec({ kind: 1 }), "'kind' must be a string defined in 'exec'"],
    [
      'an unknown kind',
      exec({ kind: 'cobol:1', code: 'x' }),
      `The specified runtime 'cobol:1' is not supported by this platform. Valid values are: ${valid}.`,
    ],
    [
      'a missing minor version',
      exec({ kind: 'python:3.10', code: 'x' }),
      `The specified runtime 'python:3.10' is not supported by this platform. Valid values are: ${valid}.`,
    ],
    [
      'no code',
      exec({ kind: 'nodejs:20' }),
      "'code' must be a string or attachment object defined in 'exec' for 'nodejs:20' actions",
    ],
    [
      'code 1',
      exec({ kind: 'nodejs:default', code: 1 }),
      "'code' must be a string or attachment object defined in 'exec' for 'nodejs:default' actions",
    ],
    ['no plain code', exec({ kind: 'swift:5.3' }), "'code' must be a string defined in 'exec' for 'swift:5.3' actions"],
    ['no main', exec({ kind: 'java:8', code: 'x' }), "'main' must be a string defined in 'exec' for 'java:8' actions"],
    ['main 1', exec({ ...node, main: 1 }), "if defined, 'main' be a string in 'exec' for 'nodejs:20' actions"],
    ['no image', exec({ kind: 'blackbox' }), "'image' must be a string defined in 'exec' for 'blackbox' actions"],
    ['a bad image', exec({ kind: 'blackbox', image: 'No Image' }), 'could not parse image name'],
    ['no components', exec({ kind: 'sequence' }), "'components' must be defined for sequence kind"],
    ['components 1', exec({ kind: 'sequence', components: 1 }), "'components' must be an array"],
    [
      'a short component',
      exec({ kind: 'sequence', components: ['a'] }),
      'requirement failed: The fully qualified name of the entity must contain at least the namespace and the name of the entity.',
    ],
    ['parameters that are no list', { exec: node, parameters: { a: 1 } }, 'parameters malformed!'],
    ['a parameter without value', { exec: node, parameters: [{ key: 'a' }] }, 'parameters malformed!'],
    ['an annotation without key', { exec: node, annotations: [{ value: 1 }] }, 'parameters malformed!'],
    ['limits 1', { exec: node, limits: 1 }, "Object expected in field 'timeout'"],
    ['half a millisecond', limits({ timeout: 100.5 }), 'requirement failed: time limit must be whole number'],
    ['memory "big"', limits({ memory: 'big' }), 'memory limit malformed'],
    ['logs "big"', limits({ logs: 'big' }), 'log limit malformed'],
    ['concurrency "big"', limits({ concurrency: 'big' }), 'concurrency limit malformed'],
    [
      'half a concurrency',
      limits({ concurrency: 1.5 }),
      'requirement failed: intra concurrency limit must be whole number',
    ],
    [
      'instances -1',
      limits({ instances: -1 }),
      'requirement failed: Action container concurrency must be greater than or equal to 0.',
    ],
    ['version 1', { exec: node, version: 1 }, 'semantic version malformed'],
    ['version x', { exec: node, version: 'x.y' }, 'semantic version malformed'],
    ['version 0.0.0', { exec: node, version: '0.0.0' }, 'semantic version malformed'],
    ['publish "yes"', { exec: node, publish: 'yes' }, 'Expected JsBoolean, but got "yes"'],
    ['delAnnotations 1', { exec: node, delAnnotations: 1 }, 'Expected Array as JsArray, but got 1'],
    ['delAnnotations [1]', { exec: node, delAnnotations: [1] }, 'Expected String as JsString, but got 1'],
  ])('%s', async (_, body, detail) => {
    const reply = await api.request('PUT', actionPath('bad'), { body });
    expect([reply.status, errorOf(reply)]).toEqual([400, malformed + detail]);
    expect(reply.headers['access-control-allow-origin']).toBeUndefined();
  });

  test.each([
    [
      'memory 127',
      { memory: 127 },
      'memory size 127 MB below allowed threshold of 128 MB (setting: limits.minMemoryMiB)',
    ],
    [
      'memory 513',
      { memory: 513 },
      'memory size 513 MB exceeds allowed threshold of 512 MB (setting: limits.maxMemoryMiB)',
    ],
    [
      'timeout 99',
      { timeout: 99 },
      'duration 99 milliseconds below allowed threshold of 100 milliseconds (setting: limits.minTimeoutMs)',
    ],
    [
      'timeout 300001',
      { timeout: 300001 },
      'duration 300001 milliseconds exceeds allowed threshold of 300000 milliseconds (setting: limits.maxTimeoutMs)',
    ],
    ['logs -1', { logs: -1 }, 'log size -1 MB below allowed threshold of 0 MB (setting: limits.minLogsMiB)'],
    ['logs 11', { logs: 11 }, 'log size 11 MB exceeds allowed threshold of 10 MB (setting: limits.maxLogsMiB)'],
    [
      'concurrency 0',
      { concurrency: 0 },
      'concurrency 0 below allowed threshold of 1 (setting: limits.minConcurrency)',
    ],
    [
      'concurrency 2',
      { concurrency: 2 },
      'concurrency 2 exceeds allowed threshold of 1 (setting: limits.maxConcurrency)',
    ],
    [
      'instances 31',
      { instances: 31 },
      'Max action instance concurrency must not exceed your namespace concurrency of 30. (setting: limits.concurrentInvocations)',
    ],
  ])('%s', async (_, given, text) => {
    const reply = await api.request('PUT', actionPath('bad'), { body: limits(given) });
    expect([reply.status, errorOf(reply)]).toEqual([400, text]);
  });

  test('no exec where there is no action', async () => {
    for (const body of [{}, { exec: null }]) {
      const reply = await api.request('PUT', `${actionPath('bad')}?overwrite=true`, { body });
      expect([reply.status, errorOf(reply)]).toEqual([400, 'exec undefined']);
    }
  });

  test('a kind past its life can be read and deleted only', async () => {
    const text =
      "The 'nodejs:6' runtime is no longer supported. You may read and delete but not update or invoke this action.";
    const refused = await api.request('PUT', actionPath('old'), { body: exec({ kind: 'nodejs:6', code: 'x' }) });
    expect([refused.status, errorOf(refused)]).toEqual([400, text]);
    await api.request('PUT', actionPath('old'), { body: hello });
    const document = await api.store.get('whisks', 'alice/old');
    await api.store.put('whisks', { ...document, exec: { kind: 'nodejs:6', code: 'x', binary: false } });
    api.controller.actions.drop('alice', 'old');
    for (const [method, body] of [
      ['PUT', {}],
      ['POST', {}],
    ] as const) {
      const reply = await api.request(method, `${actionPath('old')}?overwrite=true`, { body });
      expect([reply.status, errorOf(reply)]).toEqual([400, text]);
    }
    expect((await api.request('GET', actionPath('old'))).status).toBe(200);
    expect((await api.request('DELETE', actionPath('old'))).status).toBe(200);
  });

  test('what is to be loaded ahead is checked', async () => {
    const annotations = [{ key: 'warm', value: { imports: ['../secret'] } }];
    const reply = await api.request('PUT', actionPath('warm'), { body: { ...hello, annotations } });
    expect([reply.status, errorOf(reply)]).toEqual([400, expect.stringContaining("'warm'")]);
  });

  test('requirements of Python actions are checked, on create and on update', async () => {
    const annotations = [{ key: 'requirements', value: ['--index-url=http://evil'] }];
    const python = { exec: { kind: 'python:3', code: 'x' }, annotations };
    const reply = await api.request('PUT', actionPath('python'), { body: python });
    expect([reply.status, errorOf(reply)]).toEqual([400, expect.stringContaining("'requirements'")]);
    expect((await api.request('PUT', actionPath('python'), { body: { ...hello, annotations } })).status).toBe(200);
    const update = await api.request('PUT', `${actionPath('python')}?overwrite=true`, { body: { exec: python.exec } });
    expect(update.status).toBe(400);
  });

  test("kinds that the namespace's limits leave out are forbidden", async () => {
    const dave = { subject: 'david', namespace: 'dave', uuid: 'dave-uuid', key: 'e'.repeat(64) };
    await putIdentity(api.store, dave);
    await api.store.put('subjects', { _id: 'dave/limits', allowedKinds: ['python:3.11'] });
    const reply = await api.request('PUT', actionPath('x'), { as: dave, body: hello });
    expect([reply.status, errorOf(reply)]).toEqual([
      403,
      "The supplied authentication is not authorized to access actions of kind 'nodejs:20'.",
    ]);
  });

  test("kinds of the namespace's limits are named as those of actions are", async () => {
    const erin = { subject: 'erin0', namespace: 'erin', uuid: 'erin-uuid', key: 'f'.repeat(64) };
    await putIdentity(api.store, erin);
    await api.store.put('subjects', { _id: 'erin/limits', allowedKinds: ['python:3', 'blackbox'] });
    for (const kind of ['python:3', 'python:default', 'python:3.11']) {
      const body = { exec: { kind, code: 'def main(args): return args' } };
      expect((await api.request('PUT', actionPath(kind.replace(':', '')), { as: erin, body })).status).toBe(200);
    }
    expect((await api.request('PUT', actionPath('x'), { as: erin, body: hello })).status).toBe(403);
  });
});

describe('bodies', () => {
  test('bad JSON is refused', async () => {
    for (const [method, body] of [
      ['PUT', '{"exec":'],
      ['POST', '{bad}'],
      ['POST', '\u0000'],
    ] as const) {
      await api.request('PUT', actionPath('there'), { body: hello });
      const reply = await api.request(method, actionPath('there'), { body });
      expect([reply.status, errorOf(reply)]).toEqual([
        400,
        expect.stringMatching(/^The request content was malformed:\n./),
      ]);
    }
  });

  test.each(['[1]', '"text"', '1', 'true', 'null'])('arguments must be an object: %s', async (body) => {
    const reply = await api.request('POST', actionPath('there'), { body });
    expect([reply.status, errorOf(reply)]).toEqual([400, `${malformed}JSON object expected`]);
  });

  test('a PUT needs one', async () => {
    const reply = await api.request('PUT', actionPath('empty'));
    expect([reply.status, errorOf(reply)]).toEqual([400, 'Request entity expected but not supplied']);
  });

  test('it must be declared as JSON', async () => {
    for (const [type, method] of [
      ['text/plain', 'PUT'],
      ['application/x-www-form-urlencoded', 'POST'],
    ] as const) {
      const reply = await api.request(method, actionPath('there'), { body: hello, headers: { 'content-type': type } });
      const text = `The request's Content-Type [${type}] is not supported. Expected:\napplication/json`;
      expect([reply.status, errorOf(reply)]).toEqual([415, text]);
    }
    const charset = { 'content-type': 'Application/JSON; charset=utf-8' };
    expect((await api.request('POST', actionPath('there'), { body: {}, headers: charset })).status).toBe(202);
    expect((await api.request('POST', actionPath('there'))).status).toBe(202);
  });

  test.each([
    [
      'exec',
      exec({ kind: 'nodejs:20', code: padding(50_001) }),
      'exec larger than allowed: 50001 > 50000 bytes. (setting: limits.maxCodeBytes)',
    ],
    [
      'parameters',
      { exec: node, parameters: [{ key: 'k', value: padding(5_000) }] },
      'parameters larger than allowed: 5003 > 5000 bytes. (setting: limits.maxParametersBytes)',
    ],
    [
      'annotations',
      { exec: node, annotations: [{ key: 'k', value: padding(5_000) }] },
      'annotations larger than allowed: 5003 > 5000 bytes. (setting: limits.maxParametersBytes)',
    ],
    [
      'body',
      exec({ kind: 'nodejs:20', code: padding(1_200_000) }),
      'Request larger than allowed: 1200039 > 1125244 bytes. (code of 50000 bytes at most, in base64; setting: limits.maxCodeBytes)',
    ],
  ])('%s over the limit', async (_, body, text) => {
    const reply = await api.request('PUT', actionPath('large'), { body });
    expect([reply.status, errorOf(reply)]).toEqual([413, text]);
    expect(reply.headers['access-control-allow-origin']).toBe('*');
  });

  test('arguments over the limit, by their declared length', async () => {
    const body = JSON.stringify({ text: padding(4_990) });
    const reply = await api.request('POST', actionPath('there'), { body });
    expect([reply.status, errorOf(reply)]).toEqual([
      413,
      'Request larger than allowed: 5001 > 5000 bytes. (setting: limits.maxPayloadBytes)',
    ]);
    const fits = await api.request('POST', actionPath('there'), { body: { text: padding(4_989) } });
    expect(fits.status).toBe(202);
  });

  test('arguments over the limit, without a declared length', async () => {
    const chunks = ['{"text":"', ...Array.from({ length: 200 }, () => padding(1000)), '"}'];
    const reply = await api.request('POST', actionPath('there'), { chunks });
    expect(reply.status).toBe(413);
    const [, bytes = '0'] =
      /^Request larger than allowed: (\d+) > 5000 bytes\. \(setting: limits.maxPayloadBytes\)$/.exec(errorOf(reply)) ??
      [];
    expect(Number(bytes)).toBeGreaterThan(5000);
    expect((await api.request('POST', actionPath('there'), { chunks: ['{"a"', ':1}'] })).status).toBe(202);
  });

  test('a large body that is refused is read away, and the connection goes on', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const post = (body: string): Promise<[number | undefined, number | undefined]> =>
      new Promise((resolve, reject) => {
        const outgoing = request(
          {
            agent,
            port: api.port,
            method: 'POST',
            path: actionPath('there'),
            headers: { 'content-type': 'application/json' },
          },
          (response) => {
            const { localPort } = response.socket;
            response.resume().on('end', () => resolve([response.statusCode, localPort]));
          },
        );
        outgoing.setHeader('authorization', basic(alice));
        outgoing.on('error', reject);
        outgoing.end(body);
      });
    const [first, port] = await post(JSON.stringify({ text: padding(8_000_000) }));
    const [second, samePort] = await post('{}');
    agent.destroy();
    expect([first, second, samePort]).toEqual([413, 202, port]);
  });

  test('an order of checks: size before query, query before content', async () => {
    const large = JSON.stringify({ text: padding(6_000) });
    expect((await api.request('POST', `${actionPath('there')}?blocking=maybe`, { body: large })).status).toBe(413);
    const reply = await api.request('POST', `${actionPath('there')}?blocking=maybe`, { body: '{bad' });
    expect(errorOf(reply)).toBe("The query parameter 'blocking' was malformed:\n'maybe' is not a valid Boolean value");
    expect(errorOf(await api.request('POST', actionPath('absent'), { body: '{bad' }))).toContain(malformed);
  });

  test('a client that leaves half-way harms nobody', async () => {
    for (let round = 0; round < 5; round++) {
      await new Promise<void>((resolve, reject) => {
        const socket = connect(api.port, '127.0.0.1', () => {
          const head = `PUT ${actionPath('gone')} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n`;
          socket.write(`${head}Authorization: ${basic(alice)}\r\nContent-Length: 1000\r\n\r\n{"exec"`, () => {
            setTimeout(() => socket.destroy(), 10);
          });
        });
        socket.on('close', () => resolve());
        socket.on('error', reject);
      });
    }
    expect((await api.request('GET', '/ping')).text).toBe('pong');
    expect((await api.request('GET', actionPath('gone'))).status).toBe(404);
    expect(api.logLines.filter((line) => line.includes('a request failed'))).toEqual([]);
  });

  test.each([
    ['what is no HTTP', 'this is no HTTP', /^HTTP\/1\.1 400 Bad Request/],
    [
      'a target that is a URL with half an address',
      'GET http://[::1/ HTTP/1.1\r\nHost: x\r\nConnection: close',
      /^HTTP\/1\.1 400 .*"error":"Illegal request-target\."/s,
    ],
  ])('%s is refused', async (_, text, expected) => {
    const answer = await new Promise<string>((resolve, reject) => {
      let answered = '';
      const socket = connect(api.port, '127.0.0.1', () => socket.write(`${text}\r\n\r\n`));
      socket.on('data', (data) => (answered += data.toString()));
      socket.on('close', () => resolve(answered));
      socket.on('error', reject);
    });
    expect(answer).toMatch(expected);
  });
});
