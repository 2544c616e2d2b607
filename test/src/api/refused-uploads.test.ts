// Uploads that are larger than allowed: their refusals come before they are sent, and reach the clients that send.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { join } from 'node:path';
import { errorWithHint } from '../cli/cases.js';
import { runWsk, withFolder } from '../cli/wsk-process.js';
import type { WskResult } from '../cli/wsk-process.js';
import { actionPath, alice, basic, errorOf, startApi } from './harness.js';
import type { Api } from './harness.js';

const MiB = 1024 * 1024;
const maxCodeBytes = 2 * MiB;

let api: Api;
beforeAll(async () => {
  api = await startApi({ limits: { maxCodeBytes } });
});
afterAll(() => api.close());

/** A client that sends a PUT piece by piece and keeps what it is answered. */
class Uploader {
  readonly socket: Socket;
  answered = '';
  failure: Error | undefined;
  isEnded = false;

  constructor(length: string) {
    this.socket = connect(api.port, '127.0.0.1');
    this.socket.setEncoding('latin1').on('data', (text: string) => (this.answered += text));
    this.socket.on('error', (error) => (this.failure = error)).on('end', () => (this.isEnded = true));
    const lines = [`PUT ${actionPath('huge')} HTTP/1.1`, 'Host: x', `Authorization: ${basic(alice)}`];
    this.socket.write([...lines, 'Content-Type: application/json', length, '', ''].join('\r\n'));
  }

  /** Resolves once the server has taken the bytes. */
  async send(bytes: Buffer | string): Promise<void> {
    await new Promise<void>((resolve) => this.socket.write(bytes, () => resolve()));
  }

  /** Resolves with the whole answer: its head says how long its body is. */
  async answer(): Promise<string> {
    for (;;) {
      const end = this.answered.indexOf('\r\n\r\n');
      const length = Number(/content-length: (\d+)/i.exec(this.answered)?.[1]);
      if (end > 0 && this.answered.length >= end + 4 + length) return this.answered;
      await once(this.socket, 'data');
    }
  }
}

describe('a client that goes on sending after its refusal', () => {
  const piece = Buffer.alloc(MiB, 'x');

  test('has the refusal before it sends a body whose length is too large', async () => {
    const uploader = new Uploader(`Content-Length: ${100 * MiB}`);
    const answer = await uploader.answer();
    expect(answer).toMatch(/^HTTP\/1\.1 413 .*\r\n/);
    expect(answer).toMatch(/\r\nConnection: close\r\n/);
    expect(answer).toContain('Request larger than allowed: 104857600 > ');
    for (let sent = 0; sent < 100; sent += 1) await uploader.send(piece);
    if (!uploader.isEnded) await once(uploader.socket, 'end');
    expect([uploader.failure, uploader.answered]).toEqual([undefined, answer]);
    uploader.socket.destroy();
  });

  test('has it after the first bytes beyond the limit where no length is given', async () => {
    const uploader = new Uploader('Transfer-Encoding: chunked');
    const chunk = Buffer.concat([Buffer.from(`${MiB.toString(16)}\r\n`), piece, Buffer.from('\r\n')]);
    await uploader.send(`b\r\n{"x":"12345\r\n`);
    let sent = 0;
    while (uploader.answered === '' && sent < 50) {
      await uploader.send(chunk);
      await new Promise((done) => setTimeout(done, 5));
      sent += 1;
    }
    expect(sent).toBeLessThan(20);
    const answer = await uploader.answer();
    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
    for (let more = 0; more < 80; more += 1) await uploader.send(chunk);
    await uploader.send('0\r\n\r\n');
    if (!uploader.isEnded) await once(uploader.socket, 'end');
    expect([uploader.failure, uploader.answered]).toEqual([undefined, answer]);
    uploader.socket.destroy();
  });
});

describe('the size of code', () => {
  const put = async (bytes: number): Promise<unknown[]> => {
    const code = randomBytes(bytes).toString('base64');
    const reply = await api.request('PUT', `${actionPath('archive')}?overwrite=true`, {
      body: { exec: { kind: 'nodejs:20', code } },
    });
    return [reply.status, reply.status === 200 ? '' : errorOf(reply)];
  };

  test('is that of the archive, not of its base64', async () => {
    expect(await put(maxCodeBytes)).toEqual([200, '']);
    expect(await put(maxCodeBytes + 1)).toEqual([
      413,
      'exec larger than allowed: 2097153 > 2097152 bytes. (setting: limits.maxCodeBytes)',
    ]);
    // Read as a whole, not in pieces.
    const small = await startApi({ limits: { maxCodeBytes: 1000 } });
    for (const [bytes, status] of [
      [1000, 200],
      [1001, 413],
    ] as const) {
      const code = randomBytes(bytes).toString('base64');
      const reply = await small.request('PUT', actionPath(`a${bytes}`), {
        body: { exec: { kind: 'nodejs:20', code } },
      });
      expect(reply.status).toBe(status);
    }
    await small.close();
  });

  test('is told to callers with their limits', async () => {
    const { json } = await api.request('GET', '/api/v1/namespaces/_/limits');
    expect(json).toMatchObject({ maxActionCodeBytes: maxCodeBytes });
  });
});

describe('wsk action create', () => {
  const create = (url: string, bytes: number): Promise<WskResult> =>
    withFolder(async (directory) => {
      await writeFile(join(directory, 'big.zip'), randomBytes(bytes));
      const words = ['--apihost', url, '--auth', `${alice.uuid}:${alice.key}`];
      return runWsk([...words, 'action', 'create', 'big', 'big.zip', '--kind', 'nodejs:20'], { directory });
    });

  test('refuses a file that is larger than the platform allows, and sends nothing of it', async () => {
    let isSent = false;
    const server = createServer(({ method, url }, response) => {
      isSent ||= method === 'PUT';
      const isLimits = url === '/api/v1/namespaces/_/limits';
      response.end(JSON.stringify(isLimits ? { maxActionCodeBytes: maxCodeBytes } : {}));
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const result = await create(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, 8 * MiB);
    server.close();
    expect(result).toEqual({
      code: 157,
      stdout: '',
      stderr: errorWithHint(
        "Unable to create action 'big': exec larger than allowed: 8388608 > 2097152 bytes. (setting: limits.maxCodeBytes)",
      ),
    });
    expect(isSent).toBe(false);
  });

  test('says so of a platform of its own', async () => {
    const { code, stderr } = await create(api.url, 8 * MiB);
    expect([code, stderr]).toEqual([
      157,
      expect.stringContaining('exec larger than allowed: 8388608 > 2097152 bytes.'),
    ]);
  });

  test('stops sending where a server that tells no limit refuses before the body has come', async () => {
    let received = 0;
    const refusal = JSON.stringify({ error: 'Request larger than allowed.', code: 'tid' });
    const server = createServer((request, response) => {
      if (request.method === 'GET') {
        response
          .writeHead(404)
          .end(JSON.stringify({ error: 'The requested resource could not be found.', code: 'tid' }));
        return;
      }
      response.writeHead(413, { 'Content-Length': refusal.length, Connection: 'close' }).write(refusal);
      request.on('data', ({ length }: Buffer) => {
        received += length;
        // A network is slower than this machine.
        request.pause();
        setTimeout(() => request.resume(), 10);
      });
      request.on('end', () => response.end());
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const result = await create(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, 64 * MiB);
    server.closeAllConnections();
    server.close();
    expect(result).toEqual({
      code: 157,
      stdout: '',
      stderr: errorWithHint("Unable to create action 'big': Request larger than allowed. (code tid)"),
    });
    expect(received).toBeLessThan(32 * MiB);
  });
});
