import { expect, test } from '@jest/globals';
import { refuseWeakIsolation } from './invoker-node.js';

const lost = ['Functions see the file system of the host: mount: Operation not permitted.'];
const attempt =
  (host: string, allowWeakIsolation: boolean | undefined, inCluster = false) =>
  (): void =>
    refuseWeakIsolation({ host, allowWeakIsolation }, lost, inCluster);

test.each(['127.0.0.1', '127.1.2.3', '::1', 'localhost'])('a server at %s starts unless told not to', (host) => {
  expect(attempt(host, undefined)).not.toThrow();
  expect(attempt(host, true)).not.toThrow();
  expect(attempt(host, false)).toThrow(/^This host forbids .*allowWeakIsolation=false.*file system of the host/);
});

test.each(['0.0.0.0', '::', '192.0.2.1', 'functions.example', '127.0.0.1.example'])(
  'a server at %s starts only if told to',
  (host) => {
    expect(attempt(host, undefined)).toThrow('--allow-weak-isolation');
    expect(attempt(host, true)).not.toThrow();
  },
);

test('an invoker of a cluster starts only if told to', () => {
  expect(attempt('127.0.0.1', undefined, true)).toThrow('--allow-weak-isolation');
  expect(attempt('127.0.0.1', true, true)).not.toThrow();
});

test('a host that allows every measure will do', () => {
  expect(() => refuseWeakIsolation({ host: '0.0.0.0', allowWeakIsolation: false }, [], true)).not.toThrow();
});
