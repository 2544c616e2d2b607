import { execFileSync } from 'node:child_process';
import { realpathSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { text } from 'node:stream/consumers';
import { expect, describe, test } from '@jest/globals';
import { startByNode, startProcess } from './start-process.js';
import type { StartOptions } from './start-process.js';

const env = { PATH: process.env['PATH'] };

describe.each([
  ['by the addon', startProcess],
  ['by Node.js', startByNode],
])('a process that is started %s', (_, start) => {
  const shell = (script: string, options: Partial<StartOptions> = {}): ReturnType<typeof start> =>
    start('sh', ['-c', script, 'name', 'one'], { env, ...options });

  test('has its arguments, environment, folder and streams', async () => {
    const cwd = realpathSync(tmpdir());
    const running = shell('read -r line; echo "$1 $GIVEN $PWD $line"; echo complaint >&2; exit 3', {
      env: { ...env, GIVEN: 'two', ABSENT: undefined },
      cwd,
      stdin: 'pipe',
    });
    running.stdin?.write('three\n');
    const [said, complained] = await Promise.all([text(running.stdout), text(running.stderr), running.closed]);
    expect([said, complained]).toEqual([`one two ${cwd} three\n`, 'complaint\n']);
    expect([running.child.exitCode, running.child.signalCode]).toEqual([3, null]);
  });

  test('can open its output again by a path, and has nothing else that is open here', async () => {
    const running = shell('echo again > /dev/stdout; ls /proc/self/fd', { sockets: 1 });
    const [again, ...descriptors] = (await text(running.stdout)).trim().split('\n');
    // Of Node.js alone the output is a socket.
    if (start === startProcess) expect(again).toBe('again');
    else descriptors.unshift(again ?? '');
    // `ls` itself has the folder open.
    const inherited = execFileSync('ls', ['/proc/self/fd'], { encoding: 'utf8' }).trim().split('\n');
    expect(descriptors.sort()).toEqual([...inherited, '4'].sort());
  });

  test('has sockets in both directions', async () => {
    const running = shell('read -r line <&4; echo "got $line" >&3', { sockets: 2 });
    running.sockets[1]?.write('it\n');
    expect(await text(running.sockets[0] as NodeJS.ReadableStream)).toBe('got it\n');
    await running.closed;
    expect(running.child.exitCode).toBe(0);
  });

  test('is ended by a signal, which is told; after its end it gets none', async () => {
    const { child, closed } = shell('exec sleep 100', { newSession: true });
    process.kill(-child.pid, 0); // It leads a group.
    expect(child.kill('SIGTERM')).toBe(true);
    await closed;
    expect([child.exitCode, child.signalCode]).toEqual([null, 'SIGTERM']);
    expect(child.kill('SIGTERM')).toBe(false);
  });

  test('closes though nothing reads its output', async () => {
    const { child, closed } = shell('head -c 300000 /dev/zero; exit 0');
    child.unref();
    child.ref();
    setTimeout(() => child.kill('SIGKILL'), 100);
    await closed;
  });

  test('is refused by name if there is no such program', () => {
    for (const program of ['gpuwhisk-absent', '/gpuwhisk/absent']) {
      expect(() => start(program, [], { env })).toThrow(program);
    }
  });
});

test('many at one time each end with their own status', async () => {
  const statuses = await Promise.all(
    Array.from({ length: 60 }, async (_, at) => {
      const { child, closed } = startProcess('sh', ['-c', `exit ${at}`], { env });
      await closed;
      return child.exitCode;
    }),
  );
  expect(statuses).toEqual(Array.from({ length: 60 }, (_, at) => at));
});
