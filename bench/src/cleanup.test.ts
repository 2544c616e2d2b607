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

test('two runs at once share one order', async () => {
  const order: string[] = [];
  const cleanup = newCleanup((line) => order.push(line));
  await cleanup.run();
  cleanup.add('folder', () => void order.push('folder'));
  cleanup.add('server', async () => {
    await new Promise((resolve) => setImmediate(resolve));
    order.push('server');
  });
  await Promise.all([cleanup.run(), cleanup.run()]);
  expect(order).toEqual(['server', 'folder']);
});
