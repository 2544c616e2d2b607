import { describe, expect, test } from '@jest/globals';
import type { JsonObject, JsonValue } from '../json.js';
import { seededRandom, systemRandom } from '../system/random.js';
import { LockedParameterError, createArgumentUnlock, createParameterLock } from './parameter-encryption.js';
import type { ParameterCipher } from './parameter-encryption.js';
import type { Parameter } from './parameters.js';

/** The keys of OpenWhisk's ParameterEncryptionTests. */
const key128 = 'ra1V6AfOYAv0jCzEdufIFA==';
const key256 = 'j5rLzhtxwzPyUVUy8/p8XJmBoKeDoSzNJP1SITJEY9E=';
const other128 = 'AAECAwQFBgcICQoLDA0ODw==';
const keys = { 'aes-128': [key128], 'aes-256': [key256] };
const ciphers: ParameterCipher[] = ['aes-128', 'aes-256'];

/** Made with Java's AES/GCM/NoPadding, packed by OpenWhisk's ByteBuffer layout; the IV is seed + 7 times the index. */
const vectors: [ParameterCipher, JsonValue, string][] = [
  ['aes-128', 'secret', 'AAAADAEIDxYdJCsyOUBHTjczZ3Oyprw9n69pJb4Nzo81Jo2fUTMZPA=='],
  [
    'aes-256',
    'secret',
    'AAAAgAIJEBceJSwzOkFIT1ZdZGtyeYCHjpWco6qxuL/GzdTb4unw9/4FDBMaISgvNj1ES1JZYGdudXyDipGYn6attLvCydDX3uXs8/oBCA8WHSQrMjlAR05VXGNqcXh/ho2Um6KpsLe+xczT2uHo7/b9BAsSGSAnLjU8Q0pRWF9mbXR78bV9dA3P7BYLzSPnC1v5VlIXggMBLj3p',
  ],
  [
    'aes-128',
    { key: 'xyz', value: [1, null, true] },
    'AAAADAMKERgfJi00O0JJUJ+aTWvz+4PqFWGPGgB4g1WXK8eLfin9FaYAcBgT+au5BIhzeRbFXMLqAW+oBSba+W/pdg==',
  ],
  [
    'aes-256',
    { key: 'xyz', value: [1, null, true] },
    'AAAAgAQLEhkgJy41PENKUVhfZm10e4KJkJeepayzusHIz9bd5Ovy+QAHDhUcIyoxOD9GTVRbYmlwd36FjJOaoaivtr3Ey9LZ4Ofu9fwDChEYHyYtNDtCSVBXXmVsc3qBiI+WnaSrsrnAx87V3OPq8fj/Bg0UGyIpMDc+RUxTWmFob3Z9KhYFGiToE/jKcenGUS6yQMpMlAD+rpYgQr8sehPDpyGx7Xqvhev/jZcEKttdpu1DoQm7',
  ],
  ['aes-128', 'line1\nline2 é世', 'AAAADAUMExohKC82PURLUuIMBxo+8Yla8eEebZEm83Tddn3bdoU/y5QZ3DHv66c6pmlgPA=='],
  [
    'aes-256',
    'line1\nline2 é世',
    'AAAAgAYNFBsiKTA3PkVMU1phaG92fYSLkpmgp661vMPK0djf5u30+wIJEBceJSwzOkFIT1ZdZGtyeYCHjpWco6qxuL/GzdTb4unw9/4FDBMaISgvNj1ES1JZYGdudXyDipGYn6attLvCydDX3uXs8/oBCA8WHSQrMjlAR05VXGNqcXh/VoOmkrYFUm6kuLSU3TmPk+5o7OxnqzN/hcPIOwf0yCFP5PZa',
  ],
  ['aes-128', 0, 'AAAADAcOFRwjKjE4P0ZNVL6H+GwaPSpNHLf2g8YH9Jl8'],
  [
    'aes-256',
    0,
    'AAAAgAgPFh0kKzI5QEdOVVxjanF4f4aNlJuiqbC3vsXM09rh6O/2/QQLEhkgJy41PENKUVhfZm10e4KJkJeepayzusHIz9bd5Ovy+QAHDhUcIyoxOD9GTVRbYmlwd36FjJOaoaivtr3Ey9LZ4Ofu9fwDChEYHyYtNDtCSVBXXmVsc3qByFrEA+fS2LZJpH869D6+JmQ=',
  ],
];

const unlockOne = (cipher: string, value: JsonValue, from: Parameters<typeof createArgumentUnlock>[0] = { keys }) =>
  (createArgumentUnlock(from)({ p: value }, { p: cipher }) as JsonObject).p;

const unlockBound = (cipher: string, value: JsonValue, documentId: string, key = 'p'): JsonValue | undefined =>
  (createArgumentUnlock({ keys })({ [key]: value }, { [key]: cipher }, { [key]: documentId }) as JsonObject)[key];

describe('values', () => {
  test.each(vectors)('%s of %j as Java has it', (cipher, value, stored) => {
    expect(unlockOne(cipher, stored)).toEqual(value);
    const bytes = Buffer.from(stored, 'base64');
    const ivBytes = bytes.readUInt32BE();
    // The same IV gives the same text, byte by byte.
    const random = { ...systemRandom, bytes: () => bytes.subarray(4, 4 + ivBytes) };
    const [locked] = createParameterLock({ current: cipher, keys, bound: false }, random)(
      [{ key: 'p', value }],
      'ns/a',
    );
    expect(locked).toMatchObject({ key: 'p', value: stored, encryption: cipher });
  });

  test.each(ciphers)('%s gives back any JSON, and never the same text twice', (current) => {
    const lock = createParameterLock({ current, keys, bound: true }, seededRandom(1));
    for (const value of [null, '', 'é', 1.5, [], { a: { b: [1] } }, 'x'.repeat(100_000)]) {
      const parameters = ['p', 'q'].map((key) => ({ key, value }));
      const [first, second] = lock(parameters, 'ns/a');
      expect(first?.value).not.toEqual(second?.value);
      expect(unlockBound(current, first?.value ?? null, 'ns/a')).toEqual(value);
    }
  });

  test('that are encrypted already stay, and init parameters stay init parameters', () => {
    const stored = { key: 'old', value: 'text', encryption: 'aes-256' };
    const lock = createParameterLock({ current: 'aes-128', keys, bound: true }, seededRandom(1));
    const [old, secret] = lock([stored, { key: 'env', value: 'v', init: true }], 'ns/a');
    expect(old).toEqual(stored);
    expect(secret).toEqual({
      key: 'env',
      value: expect.any(String),
      init: true,
      encryption: 'aes-128',
      lockedIn: 'ns/a',
    });
  });

  test.each(['off', 'noop'] as const)('stay as they are with %s', (current) => {
    const plain = [{ key: 'p', value: 'v' }];
    expect(createParameterLock({ current, keys, bound: true }, seededRandom(1))(plain, 'ns/a')).toEqual(plain);
  });
});

describe.each(ciphers)('a value of %s that is bound', (current) => {
  const lock = createParameterLock({ current, keys, bound: true }, seededRandom(1));
  const [{ value }] = lock([{ key: 'p', value: 'secret' }], 'ns/pkg/a') as [Parameter];

  test('is read in its document and under its key only', () => {
    expect(unlockBound(current, value, 'ns/pkg/a')).toBe('secret');
    for (const elsewhere of ['ns/pkg/b', 'other/pkg/a', 'ns/pkg', '']) {
      expect(() => unlockBound(current, value, elsewhere)).toThrow(LockedParameterError);
    }
    expect(() => unlockBound(current, value, 'ns/pkg/a', 'q')).toThrow(LockedParameterError);
    // As OpenWhisk would read it.
    expect(() => unlockOne(current, value)).toThrow(LockedParameterError);
  });

  test('stays as it is when it is stored again', () => {
    const stored = { key: 'p', value, encryption: current };
    expect(lock([stored], 'ns/pkg/a')).toEqual([stored]);
  });
});

test.each(vectors)(
  'what OpenWhisk stored with %s of %j is read in any document, and bound at the next write',
  (cipher, value, stored) => {
    expect(unlockBound(cipher, stored, 'ns/a')).toEqual(value);
    const lock = createParameterLock({ current: 'aes-256', keys, bound: true }, seededRandom(1));
    const [bound] = lock([{ key: 'p', value: stored, encryption: cipher }], 'ns/a') as [Parameter];
    expect(bound).toMatchObject({ encryption: 'aes-256', lockedIn: 'ns/a' });
    expect(unlockBound('aes-256', bound.value, 'ns/a')).toEqual(value);
    expect(() => unlockBound('aes-256', bound.value, 'ns/b')).toThrow(LockedParameterError);
  },
);

describe('keys', () => {
  const lockWith = (first: string): JsonValue => {
    const lock = createParameterLock(
      { current: 'aes-128', keys: { 'aes-128': [first] }, bound: false },
      seededRandom(1),
    );
    return lock([{ key: 'p', value: 'secret' }], 'ns/a')[0]?.value ?? null;
  };

  test('rotate: the newest encrypts, the others still decrypt', () => {
    const rotated = { keys: { 'aes-128': [other128, key128] } };
    expect(unlockOne('aes-128', lockWith(key128), rotated)).toBe('secret');
    expect(unlockOne('aes-128', lockWith(other128), rotated)).toBe('secret');
  });

  test.each([
    ['aes-256', "The parameter 'p' is encrypted with 'aes-256', for which there is no key."],
    ['rot13', "The parameter 'p' is encrypted with 'rot13', for which there is no key."],
    ['aes-128', "The parameter 'p' cannot be decrypted with the keys for 'aes-128'."],
  ])('that are missing are told: %s', (cipher, text) => {
    const unlock = () => unlockOne(cipher, lockWith(key128), { keys: { 'aes-128': [other128] } });
    expect(unlock).toThrow(new LockedParameterError(text));
  });

  test('of the current cipher must be there', () => {
    expect(() => createParameterLock({ current: 'aes-256', keys: {}, bound: true }, seededRandom(1))).toThrow(
      'no key for aes-256',
    );
  });

  test.each([
    '',
    'AAAA',
    Buffer.alloc(60).toString('base64'),
    'no base64 at all, but long enough to hold a tag ......',
  ])('do not open what is no ciphertext: %j', (text) => {
    expect(() => unlockOne('aes-128', text)).toThrow(LockedParameterError);
  });

  test('do not open what was changed', () => {
    const bytes = Buffer.from(String(lockWith(key128)), 'base64');
    for (const at of [3, 4, 16, bytes.length - 1]) {
      const changed = Buffer.from(bytes);
      changed.writeUInt8(changed.readUInt8(at) ^ 1, at);
      expect(() => unlockOne('aes-128', changed.toString('base64'))).toThrow(LockedParameterError);
    }
  });
});

test('arguments that are no object, or not locked, or no text, are left as they are', () => {
  const unlock = createArgumentUnlock({ keys });
  expect(unlock(['a'], { a: 'aes-128' })).toEqual(['a']);
  expect(unlock(undefined, { a: 'aes-128' })).toBeUndefined();
  expect(unlock({ a: 'x', b: 7 }, { b: 'aes-128', c: 'aes-128' })).toEqual({ a: 'x', b: 7 });
  expect(unlock({ a: 'x' }, { a: 'noop' })).toEqual({ a: 'x' });
});
