import { expect, test } from '@jest/globals';
import { fullyQualified, parseQualifiedName } from './qualified-name.js';

test.each([
  ['a', '_', '', 'a', 'a'],
  ['p/a', '_', 'p', 'a', 'p/a'],
  ['/n/a', 'n', '', 'a', 'a'],
  ['/n/p/a', 'n', 'p', 'a', 'p/a'],
  ['n/p/a', 'n', 'p', 'a', 'p/a'],
  ['/n', 'n', '', 'n', ''],
])('%s', (name, namespace, packageName, entity, path) => {
  expect(parseQualifiedName(name)).toEqual({ namespace, packageName, entity, path });
});

test.each(['', '.', '/', '//a', '/n/', '/n//a', '/n/./a', '/n/p/a/b'])('%j is refused', (name) => {
  expect(() => parseQualifiedName(name)).toThrow(
    `'${name}' is not a valid qualified name: A valid qualified name must be specified.`,
  );
});

test.each([
  ['a', '/_/a'],
  ['p/a', '/_/p/a'],
  ['/n/a', '/n/a'],
  ['n/p/a', '/n/p/a'],
])('%s in a sequence is %s', (name, full) => {
  expect(fullyQualified(name)).toBe(full);
});
