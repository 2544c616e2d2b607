import { expect, test } from '@jest/globals';
import { acceptedIds } from './invoke.js';

test('ids of accepted activations', () => {
  expect([...acceptedIds('{"activationId":"a"}\n{"activationId":"b"}\n')]).toEqual(['a', 'b']);
});

test('an answer without an id is an error', () => {
  expect(() => acceptedIds('{"error":"x"}\n')).toThrow('not an accepted activation');
});
