import { expect, test } from '@jest/globals';
import { fair, TooMuchWaits } from './concurrency.js';

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Works of owners that end when they are told to, by name in the order of their begin. */
function works(atOnce: number, maxWaiting: number) {
  const inTurn = fair(atOnce, maxWaiting);
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const start = (owner: string, name: string): Promise<void> =>
    inTurn(owner, () => {
      begun.push(name);
      return new Promise((resolve) => ends.set(name, resolve));
    });
  const end = async (name: string): Promise<void> => {
    ends.get(name)?.();
    await settled();
  };
  return { begun, start, end };
}

test('an owner never holds the last slot, and owners are served in turn', async () => {
  const { begun, start, end } = works(2, 10);
  const all = ['a1', 'a2', 'a3'].map((name) => start('a', name));
  await settled();
  expect(begun).toEqual(['a1']);
  all.push(start('b', 'b1'), start('b', 'b2'), start('c', 'c1'));
  await settled();
  expect(begun).toEqual(['a1', 'b1']);
  await end('a1');
  expect(begun).toEqual(['a1', 'b1', 'a2']);
  await end('a2');
  expect(begun).toEqual(['a1', 'b1', 'a2', 'c1']);
  await end('b1');
  expect(begun).toEqual(['a1', 'b1', 'a2', 'c1', 'b2']);
  await end('c1');
  expect(begun).toEqual(['a1', 'b1', 'a2', 'c1', 'b2', 'a3']);
  await end('b2');
  await end('a3');
  await Promise.all(all);
});

test('an owner with too much that waits is refused, and others are not', async () => {
  const { begun, start, end } = works(2, 1);
  const all = [start('a', 'a1'), start('a', 'a2')];
  await expect(start('a', 'a3')).rejects.toThrow(TooMuchWaits);
  all.push(start('b', 'b1'));
  await settled();
  expect(begun).toEqual(['a1', 'b1']);
  for (const name of ['a1', 'b1', 'a2']) await end(name);
  await Promise.all(all);
});

test('work that fails gives its slot back', async () => {
  const inTurn = fair(1, 1);
  await expect(inTurn('a', () => Promise.reject(new Error('failed')))).rejects.toThrow('failed');
  expect(await inTurn('b', () => Promise.resolve(1))).toBe(1);
});
