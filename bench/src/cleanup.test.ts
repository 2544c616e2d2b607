import { expect, test } from '@jest/globals';
import { newCleanup } from './cleanup.js';

test('releases run once each, newest first, and a failure stops none', async () => {
  const order: string[] = [];
  const reports: string[] = [];
  const cleanup = newCleanup((line) => reports.push(line));
  cleanup.add('first', () => void order.push('first'));
  cleanup.add('second', () => {
    order.push('second');
    throw new Error('stuck');
  });
  cleanup.add('third', async () => void order.push('third'));
  await cleanup.run();
  await cleanup.run();
  expect(order).toEqual(['third', 'second', 'first']);
  expect(reports).toEqual(['Cannot clean up (second): stuck']);
});
