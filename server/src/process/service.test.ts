import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { getPriority, tmpdir } from 'node:os';
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

/** Raises its priority, reports it with its control group and the group's share, and waits for the end of its input. */
const server = `
const { raiseProcessorPriority } = await import(process.argv[1]);
const { readFileSync, existsSync } = await import('node:fs');
const { getPriority } = await import('node:os');
raiseProcessorPriority();
const [, own] = /^\\d+:(?:[^:]*,)?cpu(?:,[^:]*)?:(.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8')) ?? [];
const file = '/sys/fs/cgroup/cpu' + own + '/cpu.shares';
const shares = existsSync(file) ? readFileSync(file, 'utf8').trim() : 'none';
console.log(JSON.stringify({ own, shares, priority: getPriority() }));
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
`;

interface Told {
  own: string;
  shares: string;
  priority: number;
}

async function startServer(): Promise<{ told: Told; end(signal?: NodeJS.Signals): Promise<void> }> {
  const module = new URL('./service.js', import.meta.url).href;
  const child = spawn(process.execPath, ['--input-type=module', '-e', server, module], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { PATH: process.env.PATH },
  });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const exited = once(child, 'exit');
  return {
    told: JSON.parse(line.toString()) as Told,
    async end(signal) {
      if (signal === undefined) child.stdin.end();
      else child.kill(signal);
      await exited;
    },
  };
}

const canGroup = ['cpu', 'memory'].every((name) => existsSync(`/sys/fs/cgroup/${name}/cgroup.procs`));

test('a server in the session of others has a control group of its own, where functions have groups of version 1', async () => {
  const killed = await startServer();
  await killed.end('SIGKILL');
  const { told, end } = await startServer();
  const folder = join('/sys/fs/cgroup/cpu', told.own);
  if (process.getuid?.() === 0 && canGroup) {
    expect(told).toMatchObject({ shares: '9548', priority: -10 });
    // The group of the killed one is gone.
    expect(existsSync(join('/sys/fs/cgroup/cpu', killed.told.own))).toBe(false);
    expect(existsSync(folder)).toBe(true);
  } else {
    expect(told.priority).toBe(getPriority());
  }
  await end();
  if (told.shares === '9548') expect(existsSync(folder)).toBe(false);
});
