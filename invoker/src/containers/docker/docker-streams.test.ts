import { PassThrough } from 'node:stream';
import { expect, test } from '@jest/globals';
import { demultiplex, textOfMultiplexed } from './docker-streams.js';

function piece(type: number, text: string): Buffer {
  const header = Buffer.alloc(8);
  header.writeUInt8(type, 0);
  header.writeUInt32BE(Buffer.byteLength(text), 4);
  return Buffer.concat([header, Buffer.from(text)]);
}

const bytes = Buffer.concat([piece(1, 'one\n'), piece(2, 'oh\n'), piece(1, ''), piece(1, 'two\n')]);

test('what came at once, and what comes byte by byte, goes to its stream', async () => {
  for (const step of [1, 3, bytes.length]) {
    const [source, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
    demultiplex(source, bytes.subarray(0, 5), stdout, stderr);
    for (let at = 5; at < bytes.length; at += step) source.write(bytes.subarray(at, at + step));
    source.end();
    const [out, err] = await Promise.all([stdout.setEncoding('utf8').toArray(), stderr.setEncoding('utf8').toArray()]);
    expect([out.join(''), err.join('')]).toEqual(['one\ntwo\n', 'oh\n']);
  }
});

test('a connection that breaks ends both', async () => {
  const [source, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  demultiplex(source, piece(1, 'one\n'), stdout, stderr);
  source.destroy(new Error('reset'));
  expect(await stdout.setEncoding('utf8').toArray()).toEqual(['one\n']);
  expect(await stderr.toArray()).toEqual([]);
});

test('a whole answer is a text', () => {
  expect(textOfMultiplexed(bytes)).toBe('one\noh\ntwo\n');
});
