import { describe, expect, test } from '@jest/globals';
import type { StoredDocument } from '../store/artifact-store.js';
import { EntityTypeError } from './names.js';
import { MalformedError } from './malformed.js';
import { packageDocument, packageToApi, readPackage } from './package.js';

/** Documents as an OpenWhisk of 2024 writes them. */
const stored: StoredDocument = {
  _id: 'guest/utils',
  _rev: '2-abc',
  namespace: 'guest',
  name: 'utils',
  binding: {},
  parameters: [{ key: 'p', value: 'AAAADA==', init: true, encryption: 'aes-128' }],
  version: '0.0.2',
  publish: true,
  annotations: [{ key: 'description', value: 'tools' }],
  updated: 1700000000000,
  entityType: 'package',
};
const bound: StoredDocument = {
  ...stored,
  binding: { namespace: 'whisk.system', name: 'utils' },
  annotations: [{ key: 'binding', value: { namespace: 'whisk.system', name: 'utils' } }],
};

test.each([
  ['package', stored],
  ['binding', bound],
])('a %s is written as it was read', (_, document) => {
  expect(packageDocument(readPackage(document))).toEqual(document);
  expect(JSON.stringify(packageDocument(readPackage(document)).parameters)).toBe(JSON.stringify(document.parameters));
});

test('only a binding refers to a package', () => {
  expect(readPackage(stored)).not.toHaveProperty('binding');
  expect(readPackage(bound).binding).toEqual({ namespace: 'whisk.system', name: 'utils' });
});

test('the API shows it without what is the store’s own', () => {
  const shown = packageToApi(readPackage(stored));
  expect(Object.keys(shown)).toEqual([
    'namespace',
    'name',
    'binding',
    'parameters',
    'version',
    'publish',
    'annotations',
    'updated',
  ]);
});

test('a new one has no revision', () => {
  expect(packageDocument({ ...readPackage(stored), revision: '' })).not.toHaveProperty('_rev');
});

describe('what is no package', () => {
  test.each([
    ['by its type', { ...stored, entityType: 'action' }],
    ['by what it has', { _id: 'guest/x', namespace: 'guest', name: 'x', exec: {}, parameters: [] }],
  ])('%s', (_, document) => {
    expect(() => readPackage(document)).toThrow(EntityTypeError);
  });

  test.each<[string, Partial<StoredDocument>]>([
    ['no name', { name: 7 }],
    ['a namespace that is none', { namespace: null }],
    ['parameters that are none', { parameters: {} }],
    ['a binding to nothing', { binding: { namespace: 'guest' } }],
    ['a binding that is none', { binding: 'guest/x' }],
    ['a version that is none', { version: 1 }],
  ])('or cannot be understood: %s', (_, changes) => {
    expect(() => readPackage({ ...stored, ...changes } as StoredDocument)).toThrow(MalformedError);
  });
});
