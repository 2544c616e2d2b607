import { expect, test } from '@jest/globals';
import type { JsonValue } from '../json.js';
import { bumpPatch, readVersion } from './names.js';

test.each([
  ['0.0.1', '0.0.1'],
  ['1', '1.0.0'],
  ['1.2', '1.2.0'],
  ['1.2.3.4', '1.2.3'],
  ['01.2.3', '1.2.3'],
])('%s is %s', (given, version) => {
  expect(readVersion(given)).toBe(version);
});

test.each<JsonValue>(['', '0.0.0', 'x', '1.x', '-1.0.0', '1..2', '9999999999', 1, null, []])('%j is none', (given) => {
  expect(() => readVersion(given)).toThrow('semantic version malformed');
});

test('the next patch', () => {
  expect(bumpPatch('0.0.1')).toBe('0.0.2');
  expect(bumpPatch('3.2.9')).toBe('3.2.10');
});
