import { expect, test } from '@jest/globals';
import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import { createLogger } from '@gpuwhisk/common/logging';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { LargeCodes } from './action-answer.js';

test('a client that takes large code bit by bit has its place for a minute, not for longer', async () => {
  let laterMs = 0;
  const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + laterMs };
  const codes = new LargeCodes(clock, createLogger({ level: 'fatal' }));
  const exec = { kind: 'nodejs:20', code: Buffer.alloc(3_000_000, 'x'), binary: false };
  const rest = {
    parameters: [],
    annotations: [],
    limits: {},
    publish: false,
    updated: 0,
    version: '0.0.1',
    revision: '',
  };
  const action = { namespace: 'slow', name: 'a', exec, ...rest } as unknown as WhiskAction;
  const read = async (): Promise<AsyncGenerator<Uint8Array>> =>
    (await codes.answer('slow', true, () => Promise.resolve(action))).pieces as AsyncGenerator<Uint8Array>;
  const readers = await Promise.all(Array.from({ length: 7 }, read));
  let isNext = false;
  const next = read().then((pieces) => {
    isNext = true;
    return pieces;
  });
  for (const reader of readers) await reader.next();
  laterMs = 60_000;
  for (const reader of readers) await reader.next();
  expect(isNext).toBe(false);
  laterMs = 66_000;
  for (const reader of readers) await expect(reader.next()).rejects.toThrow('has not taken it in 65000 ms');
  await (await next).return(undefined);
});
