import { PassThrough } from 'node:stream';
import type { IncomingMessage } from 'node:http';
import { expect, test } from '@jest/globals';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { ClientGoneError, checkDeclaredLength, readBody } from './request.js';

/** A request with a body and headers only. */
function requestWith(headers: Record<string, string> = {}): IncomingMessage & PassThrough {
  return Object.assign(new PassThrough(), { headers }) as unknown as IncomingMessage & PassThrough;
}

test('a body is read whole', async () => {
  const request = requestWith();
  const body = readBody(request, { bytes: 10 });
  request.write('hel');
  request.end('lo');
  expect((await body).toString()).toBe('hello');
});

test('a body may have exactly the length allowed', async () => {
  const request = requestWith();
  request.end('12345');
  expect((await readBody(request, { bytes: 5 })).length).toBe(5);
});

test('a longer one is refused before its end, and read away', async () => {
  const request = requestWith();
  const body = readBody(request, { bytes: 4 });
  request.write('12345');
  await expect(body).rejects.toThrow('Request larger than allowed: 5 > 4 bytes.');
  for (let chunk = 0; chunk < 10; chunk++) request.write(Buffer.alloc(10_000));
  request.end();
  await new Promise((resolve) => request.on('end', resolve));
});

test('an endless one is cut off', async () => {
  const request = requestWith({ 'content-length': '999999999' });
  expect(() => checkDeclaredLength(request, { bytes: 4 })).toThrow('Request larger than allowed: 999999999 > 4 bytes.');
  const closed = new Promise((resolve) => request.on('close', resolve));
  const piece = Buffer.alloc(8 * 1024 * 1024);
  for (let chunk = 0; chunk < 130 && !request.destroyed; chunk++) {
    request.write(piece);
    await new Promise(setImmediate);
  }
  await closed;
});

test('a client that leaves ends the reading, whenever it leaves', async () => {
  const leaving = requestWith();
  const body = readBody(leaving, { bytes: 10 });
  leaving.write('half');
  leaving.destroy();
  await expect(body).rejects.toThrow(ClientGoneError);
  const gone = requestWith();
  gone.destroy();
  await new Promise((resolve) => gone.on('close', resolve));
  await expect(readBody(gone, { bytes: 10 })).rejects.toThrow(ClientGoneError);
});

test('large bodies that have come at once are given out in turns of their own', async () => {
  let turn = 0;
  let isOver = false;
  const count = (): void => {
    turn += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const bodyOf = async (): Promise<number> => {
    const request = requestWith();
    const body = readBody(request, { bytes: 1_000_000 }, systemClock);
    request.end(Buffer.alloc(500_000));
    expect((await body).length).toBe(500_000);
    return turn;
  };
  const turns = await Promise.all(Array.from({ length: 10 }, bodyOf));
  isOver = true;
  expect(new Set(turns).size).toBe(10);
});
