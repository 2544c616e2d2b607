import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { withCompiler } from './compiler.js';

const folder = fileURLToPath(new URL('../../../native/sandbox', import.meta.url));
const timeoutMs = 60_000;

/** Installs the filter of sandboxes, makes the calls with the given numbers, and prints the error of each. */
const program = `
#define _GNU_SOURCE
#include "sandbox.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
_Noreturn void fail(const char *measure, int error, const char *detail) { printf("%s %d %s", measure, error, detail); _exit(1); }
int main(int count, char **words) {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) return 2;
  install_filter(strcmp(words[1], "traces") == 0);
  for (int i = 2; i < count; i++) {
    char *rest;
    long number = strtol(words[i], &rest, 10), argument = *rest == ':' ? strtol(rest + 1, NULL, 0) : -1;
    errno = 0;
    long result = syscall(number, argument, -1L, -1L, -1L, -1L, -1L);
    printf("%s\\n", result < 0 ? strerrorname_np(errno) : "0");
  }
}
`;

const eperm: Record<string, number> = {
  ptrace: 101,
  syslog: 103,
  pivot_root: 155,
  adjtimex: 159,
  chroot: 161,
  acct: 163,
  settimeofday: 164,
  mount: 165,
  umount2: 166,
  swapon: 167,
  reboot: 169,
  sethostname: 170,
  iopl: 172,
  init_module: 175,
  clock_settime: 227,
  kexec_load: 246,
  add_key: 248,
  keyctl: 250,
  unshare: 272,
  move_pages: 279,
  perf_event_open: 298,
  fanotify_init: 300,
  name_to_handle_at: 303,
  open_by_handle_at: 304,
  setns: 308,
  process_vm_readv: 310,
  process_vm_writev: 311,
  kcmp: 312,
  finit_module: 313,
  kexec_file_load: 320,
  bpf: 321,
  userfaultfd: 323,
  io_uring_setup: 425,
  open_tree: 428,
  fsopen: 430,
  pidfd_getfd: 438,
  mount_setattr: 442,
  memfd_secret: 447,
  statmount: 457,
};
/** System calls outside all lists; every present kernel has some of them. */
const unlisted: Record<string, number> = {
  epoll_ctl_old: 214,
  process_madvise: 440,
  quotactl_fd: 443,
  lsm_list_modules: 461,
  later: 500,
  none: 999,
};

withCompiler('the system call filter of sandboxes', () => {
  let scratch: string;
  beforeAll(() => {
    scratch = mkdtempSync(join(tmpdir(), 'gpuwhisk-filter-'));
    writeFileSync(join(scratch, 'main.c'), program);
    const sources = [join(scratch, 'main.c'), join(folder, 'filter.c')];
    const built = spawnSync('cc', ['-std=gnu11', `-I${folder}`, '-o', join(scratch, 'calls'), ...sources], {
      encoding: 'utf8',
      timeout: timeoutMs,
    });
    if (built.status !== 0) throw new Error(built.stderr);
  });
  afterAll(() => rmSync(scratch, { recursive: true, force: true }));

  function errorsOf(calls: Record<string, number | string>, traces = false): Record<string, string> {
    const args = [traces ? 'traces' : 'usual', ...Object.values(calls).map(String)];
    const run = spawnSync(join(scratch, 'calls'), args, { encoding: 'utf8', timeout: timeoutMs });
    expect(run.status).toBe(0);
    const errors = run.stdout.trim().split('\n');
    return Object.fromEntries(Object.keys(calls).map((name, i) => [name, errors[i] ?? '']));
  }
  const each = (calls: Record<string, unknown>, error: string) =>
    Object.fromEntries(Object.keys(calls).map((name) => [name, error]));

  const onX64 = process.arch === 'x64' ? test : test.skip;

  onX64('what reaches beyond is denied, each with EPERM', () => {
    expect(errorsOf(eperm)).toEqual(each(eperm, 'EPERM'));
  });

  onX64('what is not listed fails as on a kernel that lacks it', () => {
    expect(errorsOf(unlisted)).toEqual(each(unlisted, 'ENOSYS'));
  });

  onX64('arguments decide on new processes, personalities and families of sockets', () => {
    const calls = {
      clone3: 435,
      newUserNamespace: '56:0x10000000',
      readImpliesExec: '135:0x400000',
      whichPersonality: '135:0xffffffff',
      vsock: '41:40',
      xdp: '41:44',
      x32: 0x40000000 + 39,
    };
    expect(errorsOf(calls)).toEqual({
      clone3: 'ENOSYS',
      newUserNamespace: 'EPERM',
      readImpliesExec: 'EPERM',
      whichPersonality: '0',
      vsock: 'EAFNOSUPPORT',
      xdp: 'EAFNOSUPPORT',
      x32: 'EPERM',
    });
  });

  onX64('a proxy may trace, and no more', () => {
    const calls = { ptrace: 101, userfaultfd: 323, process_vm_readv: 310, mount: 165, quotactl_fd: 443 };
    const errors = errorsOf(calls, true);
    expect(errors).toMatchObject({ process_vm_readv: 'EPERM', mount: 'EPERM', quotactl_fd: 'ENOSYS' });
    expect(['EPERM', 'ENOSYS']).not.toContain(errors.ptrace);
    expect(['EINVAL', '0']).toContain(errors.userfaultfd);
  });
});
