import { expect, test } from '@jest/globals';
import { createLogger } from '@gpuwhisk/common/logging';
import { whileLeader } from './lease.js';

test('work begins with the lease and ends without it, one after the other, also after a failure', async () => {
  const lines: string[] = [];
  const logged: string[] = [];
  let tell = (): void => undefined;
  const lease = { epoch: undefined as number | undefined, onChange: (listener: () => void) => void (tell = listener) };
  const has = (epoch: number | undefined): void => {
    lease.epoch = epoch;
    tell();
  };
  const logger = createLogger({ level: 'error', destination: { write: (line: string) => void logged.push(line) } });
  let ended: () => void = () => undefined;
  whileLeader(lease, logger, {
    begin: () => {
      lines.push('begin');
      return lines.length === 1 ? Promise.reject(new Error('not yet')) : Promise.resolve();
    },
    end: () => {
      lines.push('end');
      return new Promise((resolve) => (ended = resolve));
    },
  });
  const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  await settled();
  expect(lines).toEqual([]);
  has(1);
  has(1);
  await settled();
  has(undefined);
  await settled();
  expect(lines).toEqual(['begin', 'end']);
  expect(logged.join()).toContain('not yet');
  // Nothing begins before the end has finished.
  has(2);
  await settled();
  expect(lines).toEqual(['begin', 'end']);
  ended();
  await settled();
  expect(lines).toEqual(['begin', 'end', 'begin']);
});
