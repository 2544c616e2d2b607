import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from '@jest/globals';
import { runProgram } from '@gpuwhisk/invoker/host/programs';

const script = fileURLToPath(new URL('../../../native/fuzz/fuzz.mjs', import.meta.url));
/** Whether clang is installed with its run-time libraries, which are a separate package. */
function hasFuzzer(): boolean {
  const { stdout } = spawnSync('clang++', ['-print-runtime-dir'], { encoding: 'utf8', timeout: 20_000 });
  return stdout !== null && existsSync(stdout.trim());
}
const withFuzzer = process.env.TEST_ALL === '1' && hasFuzzer() ? describe : describe.skip;
const secondsEach = 4;
const limitMs = 900_000; // Compilers need most of this time on a busy machine.

withFuzzer('fuzzing what reads bytes of tenants', () => {
  test(
    'finds nothing in ELF objects, frames, requests, the wire of the stand-in and pages of tokens',
    async () => {
      // Runs at a lower priority than the other tests, which run at the same time.
      const args = ['-n', '10', process.execPath, script, '--seconds', String(secondsEach)];
      const report = await runProgram('nice', args, { timeoutMs: limitMs });
      const lines = report.trim().split('\n').sort();
      expect(lines).toEqual(
        ['elf', 'frames', 'pages', 'requests', 'wire'].map((name) =>
          expect.stringMatching(`^${name}: [1-9]\\d* inputs$`),
        ),
      );
    },
    limitMs,
  );
});
