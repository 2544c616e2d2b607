import { describe, expect, test } from '@jest/globals';
import { canonicalFullName, entityNameProblem, isEntityName, namespaceNameProblem } from './names.js';

describe('names', () => {
  test.each(['a', '_', '9', 'a b', 'a@b', 'a.b', 'a&b', 'a-', 'a.', 'x'.repeat(256)])('%j is one', (name) => {
    expect(isEntityName(name)).toBe(true);
    expect(entityNameProblem(name)).toBeUndefined();
    expect(namespaceNameProblem(name)).toBeUndefined();
  });

  test.each(['', ' ', ' a', 'a ', '-a', '@', 'a/b', 'a\n', 'é', 'a\u0000', 'a!'])('%j is none', (name) => {
    expect(entityNameProblem(name)).toBe('The name of the entity contains illegal characters.');
    expect(namespaceNameProblem(name)).toBe('The namespace contains illegal characters.');
  });

  test('longer than 256 characters is none', () => {
    expect(entityNameProblem('x'.repeat(257))).toBe('Name segement longer than allowed: 257 > 256.');
    expect(namespaceNameProblem('x'.repeat(300))).toBe('Namespace longer than allowed: 300 > 256.');
  });
});

describe('full names', () => {
  test.each([
    ['/ns/a', '/ns/a'],
    ['ns/a', '/ns/a'],
    ['/_/pkg/a', '/_/pkg/a'],
    ['//ns//a', '/ns/a'],
  ])('%s is %s', (given, canonical) => {
    expect(canonicalFullName(given)).toBe(canonical);
  });

  test('need a namespace and a name', () => {
    expect(() => canonicalFullName('/a')).toThrow('must contain at least the namespace and the name');
    expect(() => canonicalFullName('/ns/a!')).toThrow('fully qualified name malformed');
  });
});
