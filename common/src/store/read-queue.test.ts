import { expect, test } from '@jest/globals';
import { ReadsFullError } from './artifact-store.js';
import { mostReads, ReadQueue } from './read-queue.js';

test('a reader with one step goes before the further steps of one with many', async () => {
  const queue = new ReadQueue();
  const done: string[] = [];
  const read = (name: string, cost: number): Promise<void> => {
    queue.begin(name);
    return queue.step(
      name,
      async () => void done.push(name),
      () => cost,
    );
  };
  await Promise.all([read('many', 100), read('many', 100), read('many', 100), read('one', 1), read('one', 1)]);
  expect(done).toEqual(['many', 'one', 'one', 'many', 'many']);
});

test('a reader beyond its bound is refused, others are not, and an ended read makes room', () => {
  const queue = new ReadQueue();
  const ends = Array.from({ length: mostReads }, () => queue.begin('a'));
  expect(() => queue.begin('a')).toThrow(ReadsFullError);
  queue.begin('b');
  ends[0]?.();
  queue.begin('a');
});

test('a step that fails lets the next one begin', async () => {
  const queue = new ReadQueue();
  queue.begin('a');
  const failed = queue.step(
    'a',
    () => Promise.reject(new Error('damaged')),
    () => 1,
  );
  const next = queue.step(
    'a',
    () => Promise.resolve('read'),
    () => 1,
  );
  await expect(failed).rejects.toThrow('damaged');
  expect(await next).toBe('read');
});
