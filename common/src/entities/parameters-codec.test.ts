import { expect, test } from '@jest/globals';
import type { JsonValue } from '../json.js';
import { parametersBytes, readParameters, writeParameters } from './parameters.js';

test('parameters keep their order, and what they carry', () => {
  const given: JsonValue[] = [
    { key: 'z', value: 1 },
    { key: 'a', value: null },
    { key: 'secret', value: 'x', init: true, encryption: 'aes-128' },
  ];
  expect(writeParameters(readParameters(given))).toEqual(given);
});

test('the last of two with one key counts, at the place of the first', () => {
  const given: JsonValue[] = [
    { key: 'a', value: 1 },
    { key: 'b', value: 2 },
    { key: 'a', value: 3, init: false },
  ];
  expect(readParameters(given)).toEqual([
    { key: 'a', value: 3 },
    { key: 'b', value: 2 },
  ]);
});

test.each<JsonValue>([
  null,
  {},
  'x',
  [1],
  [null],
  [{ key: 1, value: 1 }],
  [{ key: 'a' }],
  [{ key: 'a', value: 1, init: 'yes' }],
  [{ key: 'a', value: 1, encryption: 1 }],
])('%j is refused', (given) => {
  expect(() => readParameters(given)).toThrow('parameters malformed!');
});

test('the size is that of keys and compact values', () => {
  expect(parametersBytes(readParameters([{ key: 'é', value: { a: [1, 'é'] } }]))).toBe(2 + 14);
  expect(parametersBytes([])).toBe(0);
});
