import { afterEach, expect, test } from '@jest/globals';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { until } from '@gpuwhisk/common/testing/until';
import { StoredSizes } from './stored-sizes.js';

const bytes = new Map<string, number>();
const warnings: string[] = [];
const readings: (readonly string[])[] = [];
let isAway = false;

const sizes = new StoredSizes({
  clock: systemClock,
  everyMs: 5,
  read: async (namespaces) => {
    readings.push(namespaces);
    await Promise.resolve();
    if (isAway) throw new Error('no answer');
    // Two databases have rows of theirs.
    return namespaces.flatMap((key) => [1, 2].map(() => ({ key, value: (bytes.get(key) ?? 0) / 2 })));
  },
  onWarning: (line) => void warnings.push(line),
});
afterEach(() => sizes.close());

test('bytes are those of the last reading, also while the view cannot be read, which is told once', async () => {
  bytes.set('guest', 1000);
  expect(sizes.of('guest')).toBeUndefined();
  await until(() => sizes.of('guest') === 1000);
  isAway = true;
  bytes.set('guest', 2000);
  const before = readings.length;
  await until(() => sizes.of('guest') === 1000 && readings.length > before + 3);
  expect(warnings).toEqual(['the bytes that namespaces have stored cannot be read, and stay as they were: no answer']);
  isAway = false;
  await until(() => sizes.of('guest') === 2000);
  // While no one asks, nothing is read.
  await new Promise((done) => setTimeout(done, 50));
  const asked = readings.length;
  await new Promise((done) => setTimeout(done, 50));
  expect(readings).toHaveLength(asked);
  // Many namespaces are asked for a part at a time.
  for (let at = 0; at < 5000; at++) sizes.of(`n${at}`);
  await until(() => readings.length > asked);
  expect(readings.at(-1)).toHaveLength(2000);
  expect([...sizes.all()]).toContainEqual(['guest', 2000]);
});
