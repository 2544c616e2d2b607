// Code beyond 1 MiB, which is read and answered in pieces.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { request } from 'node:http';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { locateCode } from '@gpuwhisk/common/entities/exec-codec';
import type { CodeAttachment } from '@gpuwhisk/common/entities/action';
import type { JsonObject } from '@gpuwhisk/common/json';
import { actionPath, alice, basic, bob, errorOf, startApi } from './harness.js';
import type { Account, Api, Reply } from './harness.js';

const MiB = 1024 * 1024;

let api: Api;
beforeAll(async () => {
  api = await startApi({ limits: { maxCodeBytes: 16 * MiB } });
});
afterAll(() => api.close());

/** Text that JSON escapes, and characters of one to four bytes in UTF-8. */
const line = 'const a = "\\\\";\t// é€😀\u0001\n';
const text = line.repeat(50_000);
const archive = randomBytes(MiB + 1);

const put = (name: string, exec: object, more: object = {}): Promise<Reply> =>
  api.request('PUT', `${actionPath(name)}?overwrite=true`, { body: { exec, ...more } });
const execOf = ({ json }: Reply): JsonObject => (json as { exec: JsonObject }).exec;
/** Whether a long text is another: a difference would be megabytes of output. */
const isSame = (one: unknown, other: string): boolean => one === other;

async function storedBytes(name: string): Promise<{ bytes: Uint8Array; digest: string | undefined }> {
  const document = await api.store.get('whisks', `alice/${name}`);
  const reference = (document.exec as JsonObject).code as unknown as CodeAttachment;
  const place = locateCode(reference);
  if ('bytes' in place) throw new Error('the code is in the document');
  const { bytes } = await api.store.getAttachment('whisks', `alice/${name}`, place.attachmentName);
  return { bytes, digest: reference.digest };
}

describe('large code', () => {
  test.each([
    ['text', text, Buffer.from(text), false],
    ['an archive', archive.toString('base64'), archive, true],
    ['an archive with space around it', `\n ${archive.toString('base64')}\r\n`, archive, true],
    ['what is nearly base64', `${archive.toString('base64').slice(0, -5)}-`, undefined, false],
  ])('that is %s is stored, answered, and read again', async (_, code, bytes, binary) => {
    const shown = binary ? code.trim() : code;
    const written = await put(
      'large',
      { kind: 'nodejs:20', code, main: 'm' },
      { parameters: [{ key: 'k', value: 1 }] },
    );
    expect(written.status).toBe(200);
    expect({ ...execOf(written), code: '' }).toEqual({ kind: 'nodejs:20', code: '', binary, main: 'm' });
    expect(isSame(execOf(written).code, shown)).toBe(true);
    expect(written.json).toMatchObject({ name: 'large', parameters: [{ key: 'k', value: 1 }], namespace: 'alice' });
    const read = await api.request('GET', actionPath('large'));
    expect({ ...execOf(read), code: '' }).toEqual({ ...execOf(written), code: '' });
    expect(isSame(execOf(read).code, shown)).toBe(true);
    const stored = await storedBytes('large');
    expect(Buffer.compare(stored.bytes, bytes ?? Buffer.from(code))).toBe(0);
    expect(stored.digest).toBe(`sha256-${createHash('sha256').update(stored.bytes).digest('hex')}`);
  });

  test('is kept by updates without code, answered by versions, restored, and answered by deletion', async () => {
    await put('kept', { kind: 'nodejs:20', code: text });
    const updated = await api.request('PUT', `${actionPath('kept')}?overwrite=true`, { body: { publish: true } });
    expect(isSame(execOf(updated).code, text)).toBe(true);
    await put('kept', { kind: 'nodejs:20', code: 'small' });
    const versions = actionPath('kept').replace('/actions/', '/versions/');
    const { json } = await api.request('GET', `${versions}?version=0.0.2`);
    expect(isSame((json as { exec: JsonObject }[])[0]?.exec.code, text)).toBe(true);
    const restored = await api.request('POST', `${versions}?version=0.0.2`);
    expect([restored.status, isSame(execOf(restored).code, text)]).toEqual([200, true]);
    const deleted = await api.request('DELETE', actionPath('kept'));
    expect([deleted.status, isSame(execOf(deleted).code, text)]).toEqual([200, true]);
    expect((await api.request('GET', actionPath('kept'))).status).toBe(404);
  });

  test('of a kind that has its code in the document, and in the field `jar`', async () => {
    const plain = await put('plain', { kind: 'swift:5.3', code: text });
    expect(isSame(execOf(plain).code, text)).toBe(true);
    expect(isSame(execOf(await api.request('GET', actionPath('plain'))).code, text)).toBe(true);
    const jar = await put('jar', { kind: 'java:8', jar: archive.toString('base64'), main: 'Main' });
    expect(isSame(execOf(jar).code, archive.toString('base64'))).toBe(true);
  });

  test('may come without a length, as may small code', async () => {
    // Chunks are cut within escapes, and not within characters.
    const code = text.replaceAll('😀', '');
    const whole = JSON.stringify({ exec: { kind: 'nodejs:20', code } });
    const chunks = Array.from({ length: 10 }, (_, at) =>
      whole.slice((at * whole.length) / 10, ((at + 1) * whole.length) / 10),
    );
    const written = await api.request('PUT', `${actionPath('chunks')}?overwrite=true`, { chunks });
    expect([written.status, isSame(execOf(written).code, code)]).toEqual([200, true]);
    const small = await api.request('PUT', `${actionPath('chunks')}?overwrite=true`, {
      chunks: ['{"exec":{"kind":"nodejs:20","co', 'de":"a\\', 'n"}}'],
    });
    expect([small.status, execOf(small).code]).toEqual([200, 'a\n']);
  });

  test.each([
    [
      'code beyond its bound',
      { exec: { kind: 'nodejs:20', code: 'x'.repeat(16 * MiB + 1) } },
      413,
      /larger than allowed/,
    ],
    [
      'other fields of 6 MiB',
      { other: 'x'.repeat(6 * MiB), exec: { kind: 'nodejs:20', code: 'x' } },
      413,
      /Request without code/,
    ],
    [
      'code that is no text',
      { other: 'x'.repeat(1.5 * MiB), exec: { kind: 'nodejs:20', code: 5 } },
      400,
      /'code' must be a string/,
    ],
  ])('%s is refused', async (_, body, status, message) => {
    const reply = await api.request('PUT', actionPath('refused'), { body });
    expect([reply.status, errorOf(reply)]).toEqual([status, expect.stringMatching(message) as unknown]);
    expect((await api.request('GET', actionPath('refused'))).status).toBe(404);
  });

  test('malformed JSON is refused, and a client that leaves in the middle holds nothing', async () => {
    const body = JSON.stringify({ exec: { kind: 'nodejs:20', code: text } });
    const broken = await api.request('PUT', actionPath('broken'), { body: body.slice(0, -1) });
    expect(broken.status).toBe(400);
    for (let client = 0; client < 9; client += 1) {
      const outgoing = ask('PUT', 'left', alice, body.length);
      outgoing.write(body.slice(0, MiB));
      await new Promise((done) => setTimeout(done, 20));
      outgoing.destroy();
    }
    expect((await put('left', { kind: 'nodejs:20', code: text })).status).toBe(200);
  });

  test('is answered to a few readers of a namespace at once: those of another do not wait for them', async () => {
    const code = 'x'.repeat(15 * MiB);
    for (const as of [alice, bob]) {
      await api.request('PUT', `${actionPath('slow')}?overwrite=true`, {
        as,
        body: { exec: { kind: 'nodejs:20', code } },
      });
    }
    const readers: IncomingMessage[] = [];
    for (let reader = 0; reader < 7; reader += 1) readers.push(await answerTo(ask('GET', 'slow', alice)));
    let isAnswered = false;
    const eighth = answerTo(ask('GET', 'slow', alice)).then((answer) => {
      isAnswered = true;
      return answer;
    });
    const others = await api.request('GET', actionPath('slow'), { as: bob });
    expect(isSame(execOf(others).code, code)).toBe(true);
    expect(isAnswered).toBe(false);
    readers[0]?.destroy();
    const last = await eighth;
    expect(last.statusCode).toBe(200);
    for (const reader of [...readers, last]) reader.destroy();
    expect((await api.request('GET', actionPath('slow'))).status).toBe(200);
  }, 30_000);
});

/** A request whose answer is not read until the caller does. */
function ask(method: string, name: string, as: Account, length?: number): ClientRequest {
  const headers = {
    authorization: basic(as),
    ...(length !== undefined && { 'content-type': 'application/json', 'content-length': length }),
  };
  const outgoing = request({
    host: '127.0.0.1',
    port: api.port,
    method,
    path: actionPath(name),
    headers,
    agent: false,
  });
  outgoing.on('error', () => undefined);
  if (length === undefined) outgoing.end();
  return outgoing;
}

async function answerTo(outgoing: ClientRequest): Promise<IncomingMessage> {
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage];
  incoming.on('error', () => undefined);
  return incoming;
}
