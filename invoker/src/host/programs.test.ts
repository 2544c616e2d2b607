import { getPriority, setPriority } from 'node:os';
import { afterEach, expect, test } from '@jest/globals';
import { runProgram } from './programs.js';

const before = getPriority();
afterEach(() => setPriority(before));

(process.getuid?.() === 0 ? test : test.skip)(
  'a program has the usual priority, whatever the platform has',
  async () => {
    setPriority(-3);
    const ask = 'sleep 0.1; nice';
    expect((await runProgram('sh', ['-c', ask], { timeoutMs: 10_000 })).trim()).toBe('0');
    setPriority(4);
    expect((await runProgram('sh', ['-c', ask], { timeoutMs: 10_000 })).trim()).toBe('4');
  },
);

test('a program that is missing is named by the error', async () => {
  await expect(runProgram('gpuwhisk-absent', [], { timeoutMs: 10_000 })).rejects.toMatchObject({
    lastLine: expect.stringContaining('gpuwhisk-absent'),
  });
});
