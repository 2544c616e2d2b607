import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { notifyReady } from './service.js';

/**
 * Listens as systemd does, and reports every message. Closes the descriptors that a message brings, for which its
 * sender waits.
 */
const manager = `
import os, socket, sys
listening = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
listening.bind(sys.argv[1])
print("listening", flush=True)
while True:
    text, descriptors, _, _ = socket.recv_fds(listening, 4096, 8)
    for descriptor in descriptors:
        os.close(descriptor)
    print(text.decode().replace("\\n", " "), flush=True)
`;
const has = (program: string): boolean => spawnSync(program, ['--version']).status === 0;

(has('systemd-notify') && has('python3') ? test : test.skip)(
  'a manager that waits is told once, that it serves',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-notify-'));
    const socket = join(folder, 'socket');
    const listening = spawn('python3', ['-c', manager, socket], { stdio: ['ignore', 'pipe', 'inherit'] });
    let said = '';
    listening.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()));
    try {
      await once(listening.stdout, 'data');
      expect(await notifyReady({ ...process.env, NOTIFY_SOCKET: socket })).toBe(true);
      expect(said).toContain('READY=1');
      expect(said.match(/READY=1/g)).toHaveLength(1);
    } finally {
      listening.kill('SIGKILL');
      rmSync(folder, { recursive: true });
    }
  },
);

test('without a manager nothing is told', async () => {
  expect(await notifyReady({ PATH: '/nonexistent' })).toBe(false);
});

test('a manager that is gone is an error', async () => {
  await expect(notifyReady({ ...process.env, NOTIFY_SOCKET: '/nonexistent/socket' })).rejects.toThrow();
});
