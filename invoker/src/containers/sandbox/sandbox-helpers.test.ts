import { describe, expect, test } from '@jest/globals';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { systemRandom } from '@gpuwhisk/common/system/random';
import { noCgroups } from './cgroups.js';
import { bindWords, resolversFor } from './host-view.js';
import { LauncherPool, specMessage, Slots } from './launcher.js';
import { freeBlock } from './network.js';
import { insideLaunch } from './inside-paths.js';
import { unsandboxed } from './isolation.js';

describe('bindWords', () => {
  test('hides the data folder where a bind would show it, and lays what is needed over it', () => {
    const binds = [
      { source: '/srv/fn/data/packages/a', target: '/srv/fn/data/packages/a' },
      { source: '/srv/fn', target: '/opt/fn' },
    ];
    expect(bindWords(binds, '/srv/fn/data')).toEqual([
      'bind',
      '/srv/fn',
      '/opt/fn',
      'ro',
      'mask',
      '/opt/fn/data',
      'bind',
      '/srv/fn/data/packages/a',
      '/srv/fn/data/packages/a',
      'ro',
    ]);
  });

  test("hides a data folder within the system's folders", () => {
    expect(bindWords([], '/usr/local/data')).toEqual(['mask', '/usr/local/data']);
    expect(bindWords([{ source: '/srv/fnord', target: '/a' }], '/srv/fn')).toEqual(['bind', '/srv/fnord', '/a', 'ro']);
  });
});

describe('resolversFor', () => {
  const local = 'nameserver 127.0.0.53\nsearch example.org\n';
  test('keeps resolvers that a sandbox can reach', () => {
    expect(resolversFor('nameserver 10.0.0.2\n', 'nameserver 10.0.0.3\n')).toBe('nameserver 10.0.0.2\n');
  });
  test("takes systemd's where the host asks itself, or drops the loopback ones", () => {
    expect(resolversFor(local, 'nameserver 10.0.0.3\n')).toBe('nameserver 10.0.0.3\n');
    expect(resolversFor(`${local}nameserver 9.9.9.9\n`, '')).toBe('search example.org\nnameserver 9.9.9.9\n');
  });
});

describe('freeBlock', () => {
  test('starts at the seed and steps over what the host uses', () => {
    const range = '10.208.0.0/12';
    const first = freeBlock(range, 3, []);
    expect(first).toBe(10 * 2 ** 24 + 208 * 2 ** 16 + 3 * 4096);
    expect(freeBlock(range, 3, ['10.208.48.9'])).toBe(first + 4096);
    expect(() => freeBlock('10.208.0.0/20', 0, ['10.208.0.1'])).toThrow('all of 10.208.0.0/20 is in use');
  });
});

test('slots rest before they are used again', () => {
  const slots = new Slots(1, 4);
  expect([slots.take(), slots.take()]).toEqual([1, 2]);
  slots.release(1);
  expect([slots.take(), slots.take(), slots.take()]).toEqual([3, 1, undefined]);
});

test('a spec message has its length in front and refuses NUL', () => {
  expect(specMessage(['a', 'bé'])).toEqual(Buffer.from([6, 0, 0, 0, 97, 0, 98, 0xc3, 0xa9, 0]));
  expect(() => specMessage(['a\0exec'])).toThrow('cannot be given');
});

test('without a private root, paths are those of the host', () => {
  const launch = {
    command: ['/usr/bin/node', '/opt/guest/main.js'],
    binds: [{ source: '/home/x', target: '/opt/guest' }],
    env: { PATHS: '/opt/guest/a:/usr' },
    protocol: 'framed' as const,
  };
  expect(unsandboxed(launch)).toMatchObject({
    command: ['/usr/bin/node', '/home/x/main.js'],
    env: { PATHS: '/home/x/a:/usr' },
  });
});

test('a private root has other places for files of the installation, and for packages and runtimes in the data folder', () => {
  const at = (...paths: string[]) => paths.map((path) => ({ source: path, target: path }));
  const launch = {
    command: ['/i/node', '/i/guest/main.js', '/i/data/requirements/ab/x', '--read', '/i/guests', '/i/data/gpus/pipe'],
    binds: [
      ...at(
        '/i/node',
        '/i/guest',
        '/i/data/requirements/ab',
        '/i/data/runtimes/22',
        '/i/data/gpus/pipe',
        '/opt/python',
      ),
      { source: '/i/guest/packages', target: '/node_modules' },
    ],
    env: { PATHS: '/opt/python:/i/data/runtimes/22/a:/i/guest/', TEXT: 'Not found: /i/guest' },
    protocol: 'framed' as const,
  };
  const inside = insideLaunch(launch, '/i/data', '/i');
  expect(inside.command).toEqual([
    ...['/gpuwhisk/node', '/gpuwhisk/guest/main.js', '/requirements/ab/x', '--read'],
    // No bind has these.
    ...['/i/guests', '/i/data/gpus/pipe'],
  ]);
  expect(inside.env.PATHS).toBe('/opt/python:/runtimes/22/a:/gpuwhisk/guest/');
  expect(inside.binds.map(({ source, target }) => [source, target])).toEqual([
    ['/i/node', '/gpuwhisk/node'],
    ['/i/guest', '/gpuwhisk/guest'],
    ['/i/data/requirements/ab', '/requirements/ab'],
    ['/i/data/runtimes/22', '/runtimes/22'],
    ['/i/data/gpus/pipe', '/i/data/gpus/pipe'],
    ['/opt/python', '/opt/python'],
    ['/i/guest/packages', '/node_modules'],
  ]);
  const keeping = { ...launch, keepsPaths: true };
  expect(insideLaunch(keeping, '/i/data', '/i')).toBe(keeping);
});

test('launchers that end at once are not replaced until a container is wanted', async () => {
  const slots = new Slots(1, 1000);
  const pool = new LauncherPool({
    launcherPath: '/bin/false',
    tag: 'none',
    cgroups: noCgroups,
    slots,
    clock: systemClock,
    random: systemRandom,
    frame: () => ['hostname', 'none'],
  });
  pool.refill();
  await new Promise((done) => setTimeout(done, 500));
  const used = slots.take() ?? 0;
  expect(used).toBeGreaterThan(1);
  expect(used).toBeLessThanOrEqual(3);
  pool.refill();
  await new Promise((done) => setTimeout(done, 500));
  expect(slots.take()).toBeGreaterThan(used + 1);
  await pool.close();
});
