import { expect, test } from '@jest/globals';
import { pathOf } from './activation-model.js';
import { activationPath, apiUrl } from './api-path.js';

test('paths of the API become addresses', () => {
  for (const path of [
    'viewer',
    'namespaces/_/actions/package/a%20%26%20b.c?code=false',
    'namespaces/_/actions/..a/web',
    'gpu/functions/%2Fguest%2Fhello/profile',
    'namespaces/_/activations?limit=10&name=..%2Fweb',
  ]) {
    expect(apiUrl(path)).toBe(`../api/v1/${path}`);
  }
  expect(activationPath('0123456789abcdef'.repeat(2))).toBe(
    'namespaces/_/activations/0123456789abcdef0123456789abcdef',
  );
});

test('paths that leave the API, or lead to web actions, are refused', () => {
  for (const path of [
    `namespaces/_/actions/${pathOf('../../../web/mallory/default/steal')}`,
    'namespaces/_/actions/%2e%2E/x',
    'namespaces/_/actions/.%2e/x',
    'namespaces/_/actions/.\t./x',
    'gpu/devices/../history',
    'gpu/devices/./history',
    'gpu/functions/%2Fguest%2F..%2F..%2Fweb/profile',
    'gpu\\..\\web',
    'web/guest/default/hello',
    'WEB/guest',
    '/web/guest',
    '%77eb/guest',
    'namespaces/%E0%A4%A',
    'viewer#x',
    '',
  ]) {
    expect(() => apiUrl(path)).toThrow('a part of the address is invalid');
  }
  for (const id of ['', '..', '0123456789abcdef', `${'0'.repeat(32)}/../x`, 'A'.repeat(32), `${'0'.repeat(32)}\n`]) {
    expect(() => activationPath(id)).toThrow('a part of the address is invalid');
  }
});
