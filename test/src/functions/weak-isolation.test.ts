// The start on a host that forbids a measure of isolation: without control groups, or without root.
import { describe, expect, test } from '@jest/globals';
import { startAndFail, startPlatform } from '../support/running-platform.js';
import { hasLauncher } from '../support/machine.js';

const isRoot = process.getuid?.() === 0;
const hide = 'umount -R -l /sys/fs/cgroup || exit 99; exec "$@"';
const before = isRoot ? ['unshare', '--mount', 'sh', '-c', hide, 'sh'] : [];
const weakness = /Functions are held to their memory by a watch|Without root all functions run as the user/;
/**
 * Files in memory count, also where the platform itself limits memory: with them the function has 20 MiB more than its
 * limit.
 */
const fill = `const block = Buffer.alloc(28 << 20, 1);
async function main() {
  for (const folder of ['/tmp', '/dev/shm']) {
    for (let at = 0; at < 2; at++) require('fs').writeFileSync(folder + '/full' + at, block);
  }
  await new Promise((resolve) => setTimeout(resolve, 2000));
  return { length: block.length };
}`;
const suite = hasLauncher && process.platform === 'linux' ? describe : describe.skip;

suite('a host that forbids a measure of isolation', () => {
  test.each([
    ['on loopback', []],
    ['on another address, if the flag is given', ['--host', '0.0.0.0', '--allow-weak-isolation']],
  ])('%s it starts and says which', async (_, flags) => {
    const platform = await startPlatform({ before, flags: [...flags, '--stem-cells', 'false', '--gpus', 'none'] });
    try {
      expect(platform.output()).toMatch(weakness);
      await platform.api.putAction('fill', fill, { limits: { memory: 128 } });
      const { record } = await platform.api.run('fill');
      expect(record.response.result.error).toBe('The action exhausted its memory and was aborted.');
    } finally {
      await platform.stop();
    }
  });

  test('on another address it refuses in one line, which names the flag', async () => {
    const { code, stderr } = await startAndFail({ before, flags: ['--host', '0.0.0.0', '--gpus', 'none'] });
    expect(code).toBe(1);
    const lines = stderr.trim().split('\n');
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(weakness);
    expect(lines[0]).toContain('--allow-weak-isolation');
  });
});
