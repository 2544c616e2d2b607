import { getPriority } from 'node:os';
import { expect, test } from '@jest/globals';
import { runInWorker } from './worker-run.js';

const moduleOf = (text: string): URL => new URL(`data:text/javascript,${encodeURIComponent(text)}`);
const never = new AbortController().signal;

test('a module computes in a thread of its own', async () => {
  expect(await runInWorker(moduleOf('export default ({ a }) => ({ twice: 2 * a })'), { a: 21 }, never)).toEqual({
    twice: 42,
  });
});

test('what it throws arrives, and so does an end without a result', async () => {
  const thrower = moduleOf('export default () => { throw new RangeError("too far"); }');
  await expect(runInWorker(thrower, null, never)).rejects.toThrow('too far');
  await expect(runInWorker(moduleOf('process.exit(3)'), null, never)).rejects.toThrow('exit code 3');
});

test('an endless computation ends with its signal', async () => {
  const abort = new AbortController();
  const endless = runInWorker(moduleOf('export default () => { for (;;); }'), null, abort.signal);
  setTimeout(() => abort.abort(new Error('no more')), 50);
  await expect(endless).rejects.toThrow('no more');
  await expect(runInWorker(moduleOf('export default () => 1'), null, abort.signal)).rejects.toThrow('no more');
});

(process.platform === 'linux' ? test : test.skip)(
  'it computes when the rest of the process has nothing to do',
  async () => {
    const before = getPriority();
    const asking = moduleOf('import { getPriority } from "node:os"; export default () => getPriority()');
    expect(await runInWorker(asking, null, never)).toBeGreaterThan(before);
    expect(getPriority()).toBe(before);
  },
);
