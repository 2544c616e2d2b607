import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { ArtifactStore, StoredDocument } from '@gpuwhisk/common/store/artifact-store';
import { NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import { actionPath, errorOf, hello, startApi } from './harness.js';
import type { Api, Reply } from './harness.js';

interface ActionJson {
  namespace: string;
  name: string;
  exec: Record<string, unknown>;
  parameters: unknown[];
  limits: Record<string, number>;
  version: string;
  publish: boolean;
  annotations: { key: string; value: unknown }[];
  updated: number;
}

/** Called between the controller's read and its write, so that a test can change the stored data. */
let beforeWrite: (() => Promise<void>) | undefined;
function interrupted(store: ArtifactStore): ArtifactStore {
  return new Proxy(store, {
    get(target, name: keyof ArtifactStore) {
      if (name === 'put' || name === 'delete') {
        return async (...args: unknown[]) => {
          const hook = beforeWrite;
          beforeWrite = undefined;
          await hook?.();
          return (target[name] as (...args: unknown[]) => Promise<unknown>).apply(target, args);
        };
      }
      return (target[name] as (...args: unknown[]) => unknown).bind(target);
    },
  });
}

let api: Api;
beforeAll(async () => {
  api = await startApi({ wrapStore: interrupted });
});
afterAll(() => api.close());
afterEach(() => {
  beforeWrite = undefined;
});

const action = (reply: Reply): ActionJson => reply.json as ActionJson;
const put = (name: string, body: unknown, overwrite = false): Promise<Reply> =>
  api.request('PUT', `${actionPath(name)}?overwrite=${overwrite}`, { body });
const stored = (name: string): Promise<StoredDocument> => api.store.get('whisks', `alice/${name}`);
const bigSource = (letter: string): string => `// ${letter.repeat(20_000)}\n`;

describe('creating', () => {
  test('gives the whole action, with defaults', async () => {
    const before = Date.now();
    const reply = await put('created', { ...hello, name: 'ignored', namespace: 'ignored' });
    expect(reply.status).toBe(200);
    expect(reply.headers['content-type']).toBe('application/json');
    const { updated, ...rest } = action(reply);
    expect(updated).toBeGreaterThanOrEqual(before);
    expect(rest).toEqual({
      namespace: 'alice',
      name: 'created',
      exec: { kind: 'nodejs:20', code: hello.exec.code, binary: false },
      parameters: [],
      limits: { timeout: 60000, memory: 256, logs: 10, concurrency: 1 },
      version: '0.0.1',
      publish: false,
      annotations: [
        { key: 'provide-api-key', value: false },
        { key: 'exec', value: 'nodejs:20' },
      ],
    });
    expect((await api.request('GET', actionPath('created'))).json).toEqual(reply.json);
  });

  test('takes what is given', async () => {
    const body = {
      exec: { kind: ' NodeJS:Default ', code: 'x', main: 'go' },
      parameters: [
        { key: 'p', value: { deep: [1] } },
        { key: 'q', value: 1, init: true },
        { key: 'p', value: null },
      ],
      limits: { memory: 128, timeout: 100, instances: 2 },
      version: '1.2',
      publish: true,
      annotations: [
        { key: 'exec', value: 'a lie' },
        { key: 'provide-api-key', value: true },
      ],
    };
    expect(action(await put('given', body))).toMatchObject({
      exec: { kind: 'nodejs:20', code: 'x', main: 'go', binary: false },
      parameters: [
        { key: 'p', value: null },
        { key: 'q', value: 1, init: true },
      ],
      limits: { timeout: 100, memory: 128, logs: 10, concurrency: 1, instances: 2 },
      version: '1.2.0',
      publish: true,
      annotations: [
        { key: 'exec', value: 'nodejs:20' },
        { key: 'provide-api-key', value: true },
      ],
    });
  });

  test('names may hold spaces and other signs', async () => {
    for (const name of ['with space', 'a.b-c@d&e', '_', 'x'.repeat(256)]) {
      expect(action(await put(name, hello)).name).toBe(name);
      expect((await api.request('GET', actionPath(name))).status).toBe(200);
    }
  });

  test.each(['python:default', 'python:3'])('%s is stored as the kind that it means', async (kind) => {
    expect(action(await put(`kind ${kind.replace(':', ' ')}`, { exec: { kind, code: 'x' } })).exec.kind).toBe(
      'python:3.11',
    );
  });

  test('a container image, with and without code', async () => {
    const image = { kind: 'blackbox', image: 'registry.example.com:5000/some/image:1.0' };
    expect(action(await put('image', { exec: image })).exec).toEqual({ ...image, binary: false });
    expect(action(await put('image code', { exec: { ...image, code: 'x', main: 'm' } })).exec).toEqual({
      ...image,
      code: 'x',
      binary: false,
      main: 'm',
    });
  });
});

describe('code', () => {
  const zip = Buffer.from('UEsDBAoAAAAAAA==', 'base64');

  test('small code lies in the document', async () => {
    await put('small', { exec: { kind: 'nodejs:20', code: 'tiny?>>' } });
    expect((await stored('small')).exec).toEqual({
      kind: 'nodejs:20',
      code: {
        attachmentName: 'mem:dGlueT8-Pg==',
        attachmentType: 'text/plain; charset=UTF-8',
        length: 7,
        digest: expect.stringMatching(/^sha256-[0-9a-f]{64}$/),
      },
      binary: false,
    });
  });

  test('large code lies beside it, and only the last', async () => {
    const names: string[] = [];
    for (const letter of ['a', 'b']) {
      await put('large', { exec: { kind: 'nodejs:20', code: bigSource(letter) } }, true);
      const { code } = (await stored('large')).exec as unknown as { code: { attachmentName: string } };
      expect(code).toMatchObject({ attachmentType: 'text/plain; charset=UTF-8', length: 20_004 });
      expect(code.attachmentName).toMatch(/^couch:[0-9a-f-]{36}$/);
      names.push(code.attachmentName.slice('couch:'.length));
    }
    expect(action(await api.request('GET', actionPath('large'))).exec.code).toBe(bigSource('b'));
    const [first = '', second = ''] = names;
    await expect(api.store.getAttachment('whisks', 'alice/large', first)).rejects.toThrow(NoDocumentError);
    await put('large', { annotations: [] }, true);
    expect((await api.store.getAttachment('whisks', 'alice/large', second)).bytes.length).toBe(20_004);
    expect(action(await put('large', { publish: true }, true)).exec.code).toBe(bigSource('b'));
    await api.request('DELETE', actionPath('large'));
    await expect(api.store.getAttachment('whisks', 'alice/large', second)).rejects.toThrow(NoDocumentError);
  });

  test('archives are base64', async () => {
    const code = Buffer.concat([zip, Buffer.alloc(30_000, 7)]).toString('base64');
    expect(action(await put('zip', { exec: { kind: 'nodejs:20', code, binary: false } })).exec).toMatchObject({
      binary: true,
      code,
    });
    expect(action(await api.request('GET', actionPath('zip'))).exec.code).toBe(code);
  });

  test('kinds without attachments keep it as a string', async () => {
    await put('plain', { exec: { kind: 'swift:5.3', code: bigSource('s') } });
    expect((await stored('plain')).exec).toEqual({ kind: 'swift:5.3', code: bigSource('s'), binary: false });
  });

  test('can be left out of the answer', async () => {
    await put('codeless', hello);
    const reply = await api.request('GET', `${actionPath('codeless')}?code=false`);
    expect(action(reply).exec).toEqual({ kind: 'nodejs:20', binary: false });
    expect(action(await api.request('GET', `${actionPath('codeless')}?code=true`)).exec.code).toBe(hello.exec.code);
  });

  test('what is remembered for invoking holds none', async () => {
    await put('remembered', { exec: { kind: 'nodejs:20', code: bigSource('r') } });
    expect(api.controller.actions.cached('alice', 'remembered')?.exec).toMatchObject({ code: '', binary: false });
    await put('remembered', { exec: { kind: 'swift:5.3', code: bigSource('r') } }, true);
    expect(api.controller.actions.cached('alice', 'remembered')?.exec).toMatchObject({ kind: 'swift:5.3', code: '' });
  });

  test('two overwrites at once leave one action with its own code', async () => {
    await put('race', { exec: { kind: 'nodejs:20', code: bigSource('0') } });
    const replies = await Promise.all(
      ['1', '2', '3'].map((letter) => put('race', { exec: { kind: 'nodejs:20', code: bigSource(letter) } }, true)),
    );
    expect(replies.map((reply) => reply.status)).toEqual([200, 200, 200]);
    expect(replies.map((reply) => action(reply).version).sort()).toEqual(['0.0.2', '0.0.3', '0.0.4']);
    const last = replies.find((reply) => action(reply).version === '0.0.4');
    expect(action(await api.request('GET', actionPath('race'))).exec.code).toBe(last && action(last).exec.code);
  });
});

describe('updating', () => {
  test('needs overwrite=true', async () => {
    await put('kept', hello);
    for (const query of ['', '?overwrite=false', '?overwrite=']) {
      const reply = await api.request('PUT', actionPath('kept') + query, { body: hello });
      expect([reply.status, errorOf(reply)]).toEqual([409, 'resource already exists']);
      expect(reply.headers['access-control-allow-origin']).toBe('*');
    }
    expect(action(await api.request('GET', actionPath('kept'))).version).toBe('0.0.1');
  });

  test('keeps what is not given and raises the version', async () => {
    await put('merged', {
      ...hello,
      parameters: [{ key: 'p', value: 1 }],
      limits: { memory: 128, logs: 1 },
      annotations: [
        { key: 'a', value: 1 },
        { key: 'b', value: 2 },
        { key: 'c', value: 3 },
      ],
      publish: true,
    });
    const reply = await put(
      'merged',
      { limits: { timeout: 1000 }, annotations: [{ key: 'b', value: 20 }], delAnnotations: ['a', 'absent'] },
      true,
    );
    expect(action(reply)).toMatchObject({
      exec: { ...hello.exec, binary: false },
      parameters: [{ key: 'p', value: 1 }],
      limits: { timeout: 1000, memory: 128, logs: 1, concurrency: 1 },
      version: '0.0.2',
      publish: true,
      annotations: [
        { key: 'b', value: 20 },
        { key: 'c', value: 3 },
        { key: 'provide-api-key', value: false },
        { key: 'exec', value: 'nodejs:20' },
      ],
    });
    const second = action(await put('merged', { parameters: [], exec: { kind: 'python:3.11', code: 'y' } }, true));
    expect(second).toMatchObject({ version: '0.0.3', parameters: [], exec: { kind: 'python:3.11', code: 'y' } });
    expect(second.annotations.at(-1)).toEqual({ key: 'exec', value: 'python:3.11' });
    expect(action(await put('merged', { version: '2.0.0' }, true)).version).toBe('2.0.0');
    expect(action(await put('merged', {}, true)).version).toBe('2.0.1');
  });

  test('does not add provide-api-key to an action that was made without', async () => {
    await put('older', hello);
    const document = await stored('older');
    await api.store.put('whisks', { ...document, annotations: [{ key: 'exec', value: 'nodejs:20' }] });
    expect(action(await put('older', {}, true)).annotations).toEqual([{ key: 'exec', value: 'nodejs:20' }]);
  });

  test('may be the first write', async () => {
    expect(action(await put('fresh', hello, true)).version).toBe('0.0.1');
  });

  test('a stale one is refused', async () => {
    await put('stale', hello);
    beforeWrite = async () => {
      await api.store.put('whisks', await stored('stale'));
    };
    const reply = await put('stale', { publish: true }, true);
    expect([reply.status, errorOf(reply)]).toEqual([409, 'Concurrent modification to resource detected.']);
    expect((await put('stale', { publish: true }, true)).status).toBe(200);
  });
});

describe('reading and deleting', () => {
  test('deleting gives the action back, once', async () => {
    await put('doomed', { exec: { kind: 'nodejs:20', code: bigSource('d') } });
    const reply = await api.request('DELETE', actionPath('doomed'));
    expect([reply.status, action(reply).exec.code]).toEqual([200, bigSource('d')]);
    expect(api.controller.actions.cached('alice', 'doomed')).toBeUndefined();
    for (const method of ['GET', 'DELETE', 'POST']) {
      const gone = await api.request(method, actionPath('doomed'));
      expect([gone.status, errorOf(gone)]).toEqual([404, 'The requested resource does not exist.']);
      expect(gone.headers['access-control-allow-origin']).toBe('*');
    }
  });

  test('a stale delete is refused', async () => {
    await put('moving', hello);
    beforeWrite = async () => {
      await api.store.put('whisks', await stored('moving'));
    };
    const reply = await api.request('DELETE', actionPath('moving'));
    expect([reply.status, errorOf(reply)]).toEqual([409, 'Concurrent modification to resource detected.']);
  });

  test('an action whose code was lost can be deleted', async () => {
    await put('lost', { exec: { kind: 'nodejs:20', code: bigSource('l') } });
    await api.store.put('whisks', await stored('lost'), []);
    expect((await api.request('GET', actionPath('lost'))).status).toBe(500);
    expect((await api.request('DELETE', actionPath('lost'))).status).toBe(200);
  });

  test('a name of another collection is a conflict', async () => {
    await api.store.put('whisks', {
      _id: 'alice/bag',
      namespace: 'alice',
      name: 'bag',
      binding: {},
      parameters: [],
      annotations: [],
      version: '0.0.1',
      publish: false,
      updated: 1,
      entityType: 'package',
    });
    for (const method of ['GET', 'PUT', 'DELETE', 'POST']) {
      const reply = await api.request(
        method,
        `${actionPath('bag')}?overwrite=true`,
        method === 'PUT' ? { body: hello } : {},
      );
      expect([method, reply.status, errorOf(reply)]).toEqual([
        method,
        409,
        'Resource by this name exists but is not in this collection.',
      ]);
    }
  });

  test('a document that cannot be read is said to be corrupted', async () => {
    await api.store.put('whisks', { _id: 'alice/bad', namespace: 'alice', name: 'bad', exec: 1, entityType: 'action' });
    const reply = await api.request('GET', actionPath('bad'));
    expect([reply.status, errorOf(reply)]).toEqual([500, 'Resource is corrupted and cannot be read.']);
  });

  test('what fails inside is 500, logged, and says nothing', async () => {
    await put('unlucky', hello);
    beforeWrite = () => Promise.reject(new Error('the disk is on fire'));
    const reply = await api.request('PUT', `${actionPath('unlucky')}?overwrite=true`, {
      body: {},
      headers: { 'x-request-id': 'fire' },
    });
    expect(reply.json).toEqual({ error: 'There was an internal server error.', code: 'fire' });
    expect(reply.status).toBe(500);
    const line = api.logLines.find((each) => each.includes('the disk is on fire')) ?? '{}';
    expect(JSON.parse(line)).toMatchObject({ transid: 'fire', level: 50 });
  });
});
