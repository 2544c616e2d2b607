import { describe, expect, test } from '@jest/globals';
import { seededRandom } from '../system/random.js';
import {
  codeText,
  isBase64Code,
  locateCode,
  storeCode,
  execBytes,
  readExecInput,
  readStoredExec,
  writeExec,
} from './exec-codec.js';

describe('what counts as an archive', () => {
  test.each(['abcd', 'abc=', 'ab==', ' abcd \n', 'ab+/', 'A'.repeat(4_000_000)])('%#', (code) => {
    expect(isBase64Code(code)).toBe(true);
  });
  test.each(['', '   ', 'abc', 'abcde', 'a===', '====', 'ab=c', 'ab-_', 'ab\ncd123', `${'A'.repeat(4_000_000)}!AAA`])(
    '%# does not',
    (code) => {
      expect(isBase64Code(code)).toBe(false);
    },
  );
});

describe('code', () => {
  const random = seededRandom(1);

  test('under 16 KiB is within the reference, to the byte', () => {
    for (const [code, binary] of [
      ['hélloooo??>>', false],
      ['////++++', true],
      ['', false],
    ] as const) {
      const stored = storeCode(code, binary, random);
      expect(stored.attachment).toBeUndefined();
      const place = locateCode(stored.reference);
      expect('bytes' in place && codeText(place.bytes, binary)).toBe(code);
    }
    expect(storeCode('x'.repeat(16 * 1024 - 1), false, random).attachment).toBeUndefined();
  });

  test('from 16 KiB on is beside the document', () => {
    const stored = storeCode('x'.repeat(16 * 1024), false, random);
    expect(stored.reference).toMatchObject({ length: 16384, attachmentType: 'text/plain; charset=UTF-8' });
    expect(locateCode(stored.reference)).toEqual({ attachmentName: stored.attachment?.name });
    expect(stored.reference.attachmentName).toBe(`couch:${stored.attachment?.name}`);
    expect(stored.attachment?.name).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });

  test('of old documents has a bare name', () => {
    expect(locateCode({ attachmentName: 'codefile', attachmentType: 'text/plain' })).toEqual({
      attachmentName: 'codefile',
    });
  });
});

describe('stored executables', () => {
  const attachment = {
    attachmentName: 'couch:1',
    attachmentType: 'application/octet-stream',
    length: 5,
    digest: 'sha256-x',
  };
  test.each([
    ['plain code', { kind: 'swift:5.3', code: 'func', binary: false }],
    ['main', { kind: 'java:8', code: attachment, binary: true, main: 'Hello' }],
    [
      'a bare attachment',
      { kind: 'nodejs:20', code: { attachmentName: 'codefile', attachmentType: 'text/plain' }, binary: false },
    ],
    ['an image', { kind: 'blackbox', image: 'me/image:1', binary: false }],
    ['an image with code', { kind: 'blackbox', image: 'me/image:1', code: attachment, binary: true, main: 'm' }],
    ['a sequence', { kind: 'sequence', components: ['/ns/a', '/ns/p/b'] }],
    ['a kind that is gone', { kind: 'nodejs:4', code: 'x', binary: false }],
  ])('%s is written as it was read', (_, stored) => {
    expect(writeExec(readStoredExec(stored))).toEqual(stored);
  });

  test('older forms are read', () => {
    expect(readStoredExec({ kind: 'java', jar: attachment, main: 'M' })).toEqual({
      kind: 'java',
      code: attachment,
      binary: false,
      main: 'M',
    });
    expect(readStoredExec({ kind: 'nodejs:6', code: 'abcd' })).toMatchObject({ binary: true });
    expect(readStoredExec({ kind: 'sequence', components: [{ path: 'ns', name: 'a' }] })).toEqual({
      kind: 'sequence',
      components: ['/ns/a'],
    });
  });

  test.each([
    [1],
    [{}],
    [{ kind: 'x:1' }],
    [{ kind: 'x:1', code: 1 }],
    [{ kind: 'x:1', code: { attachmentName: 'a' } }],
  ])('%j is refused', (stored) => {
    expect(() => readStoredExec(stored)).toThrow();
  });
});

describe('given executables', () => {
  const manifest = { runtimes: {} };
  test.each([
    'image',
    'a/b',
    'host.com/a',
    'host.com:5000/a/b:tag',
    'h:1/a',
    'a__b/c-d.e:T_1',
    `a@sha256:${'0'.repeat(64)}`,
  ])('image %s', (image) => {
    expect(readExecInput({ kind: 'blackbox', image }, manifest)).toEqual({ kind: 'blackbox', image, binary: false });
  });
  test.each(['', 'A', 'a b', 'a:', '/a', 'a/', 'a:b:c', '--rm', 'a'.repeat(600)])('image %j is refused', (image) => {
    expect(() => readExecInput({ kind: 'blackbox', image }, manifest)).toThrow('could not parse image name');
  });

  test('blank code of an image is none', () => {
    expect(readExecInput({ kind: 'blackbox', image: 'a', code: '  ' }, manifest)).not.toHaveProperty('code');
  });
});

test('the size counts code, main and image', () => {
  expect(execBytes({ kind: 'k:1', code: 'é12', binary: false, main: 'm' })).toBe(5);
  expect(execBytes({ kind: 'blackbox', image: 'abc', binary: false })).toBe(3);
  expect(execBytes({ kind: 'sequence', components: ['/a/b', '/a/c'] })).toBe(8);
});
