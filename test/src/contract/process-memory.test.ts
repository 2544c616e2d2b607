// Memory of functions on a host without control groups: system calls whose memory the watch cannot see are refused.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { existsSync } from 'node:fs';
import { noCgroups } from '@gpuwhisk/invoker/containers/sandbox/cgroups';
import type { Container } from '@gpuwhisk/invoker/containers/container-factory';
import { initialized, run } from './containers/cases.js';
import { hasLauncher, isRoot, openProcessFactory } from './process-harness.js';
import type { ProcessHarness } from './process-harness.js';

/** Requires Perl, which can make system calls by number. */
const canTest = hasLauncher && isRoot && process.arch === 'x64' && existsSync('/usr/bin/perl');
const suite = canTest ? describe : describe.skip;
const EPERM = '1';

suite('without control groups', () => {
  let harness: ProcessHarness;
  let container: Container;

  beforeAll(async () => {
    harness = await openProcessFactory({ cgroups: noCgroups });
    expect([...harness.report.weaknesses, ...harness.report.notes]).toContainEqual(
      expect.stringMatching(/^Functions are held to their memory by a watch/),
    );
    container = await initialized(harness.factory);
  });
  afterAll(() => harness.close());

  /** The output of a Perl expression that runs in the container. */
  async function perl(expression: string): Promise<unknown> {
    const script = `const { spawnSync } = require('child_process');
      return spawnSync('/usr/bin/perl', ['-e', ${JSON.stringify(expression)}], { encoding: 'utf8' }).stdout;`;
    const outcome = await run(container, { do: 'script', script }).outcome;
    return outcome.type === 'result' && !Array.isArray(outcome.result) ? outcome.result.value : outcome;
  }
  const call = (numberAndWords: string): Promise<unknown> =>
    perl(`my $name = 'name'; print syscall(${numberAndWords}) == -1 ? $! + 0 : 'done'`);

  test.each([
    ['shared memory without a file', '9, 0, 1 << 20, 3, 0x21, -1, 0'],
    ['the same by its newer name', '9, 0, 1 << 20, 3, 0x23, -1, 0'],
    ['a file in memory', '319, $name, 0'],
    ["System V's", '29, 0, 1 << 20, 0x3ff'],
    ['semaphores, which the kernel keeps', '64, 0, 32000, 0x3ff'],
    ['message queue, which the kernel keeps', '68, 0, 0x3ff'],
  ])('a function gets no %s', async (_, words) => {
    expect(await call(words)).toBe(EPERM);
  });

  test('a function gets private memory, shared memory of files, and no /dev/zero, which is a way to the other', async () => {
    expect(await call('9, 0, 1 << 20, 3, 0x22, -1, 0')).toBe('done');
    const file = `open my $f, '+>', '/dev/shm/a' or die; truncate $f, 1 << 20`;
    expect(await perl(`${file}; print syscall(9, 0, 1 << 20, 3, 1, fileno($f), 0) == -1 ? $! + 0 : 'done'`)).toBe(
      'done',
    );
    expect(await perl(`print -e '/dev/zero' ? 'there' : 'not there'`)).toBe('not there');
  });

  const fill = `my $data = 'x' x 65536; my @kept; for (1 .. 480) {`;
  test.each([
    [
      'sockets',
      `socketpair(my $a, my $b, 1, 1, 0); $a->blocking(0); 1 while syswrite $a, $data; push @kept, $a, $b; }`,
    ],
    [
      'sockets whose other end is closed',
      `socketpair(my $a, my $b, 1, 1, 0); $a->blocking(0); 1 while syswrite $a, $data; close $a; push @kept, $b; }`,
    ],
    [
      'connections',
      `push @kept, IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) or last; push @kept, scalar $l->accept;
       $kept[-1]->blocking(0); 1 while syswrite $kept[-1], $data; }`,
    ],
  ])('a function that fills %s beyond its memory is ended', async (_, body) => {
    const greedy = await initialized(harness.factory, { memoryMiB: 128 });
    const program = `use IO::Socket; use IO::Handle; for (1 .. 4) { fork; } my $l = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1');
      my $port = $l ? $l->sockport : 0; ${fill} ${body} sleep 30;`;
    const script = `return require('child_process').spawnSync('/usr/bin/perl', ['-e', ${JSON.stringify(program)}],
      { encoding: 'utf8' }).stderr;`;
    expect(await run(greedy, { do: 'script', script }).outcome).toEqual({ type: 'lost', oomKilled: true });
  });

  test('a function that takes more private memory than it may is ended', async () => {
    const greedy = await initialized(harness.factory);
    expect(await run(greedy, { do: 'exhaust' }).outcome).toEqual({ type: 'lost', oomKilled: true });
  });
});
