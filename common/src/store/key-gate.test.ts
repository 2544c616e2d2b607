import { beforeEach, expect, test } from '@jest/globals';
import { KeyGate } from './key-queue.js';

let gate: KeyGate;
let begun: string[];
let ends: Record<string, () => void>;
beforeEach(() => {
  gate = new KeyGate();
  begun = [];
  ends = {};
});

/** Work that lasts until `ends[name]` is called. */
const work = (name: string) => (): Promise<string> => {
  begun.push(name);
  return new Promise((resolve) => (ends[name] = () => resolve(name)));
};
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('users do not wait for each other, nor for other keys', async () => {
  const all = [gate.use('k', work('a')), gate.use('k', work('b')), gate.own('other', work('c'))];
  await settle();
  expect(begun).toEqual(['a', 'b', 'c']);
  for (const end of Object.values(ends)) end();
  expect(await Promise.all(all)).toEqual(['a', 'b', 'c']);
});

test('an owner waits for users, and later users for it', async () => {
  const all = [gate.use('k', work('user')), gate.own('k', work('owner')), gate.use('k', work('late'))];
  await settle();
  expect(begun).toEqual(['user']);
  ends.user?.();
  await settle();
  expect(begun).toEqual(['user', 'owner']);
  ends.owner?.();
  await settle();
  expect(begun).toEqual(['user', 'owner', 'late']);
  ends.late?.();
  expect(await Promise.all(all)).toEqual(['user', 'owner', 'late']);
});

test('work that fails lets the next one in', async () => {
  const fail = (): Promise<never> => Promise.reject(new Error('no'));
  await expect(gate.use('k', fail)).rejects.toThrow('no');
  await expect(gate.own('k', fail)).rejects.toThrow('no');
  const last = gate.use('k', work('last'));
  await settle();
  ends.last?.();
  expect(await last).toBe('last');
});
