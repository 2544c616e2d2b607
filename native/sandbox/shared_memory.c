// Where no control group counts a sandbox's memory, a watch on its processes' private pages does (supervise.c). Shared
// memory would escape it: its pages stay when they are mapped no more. So it comes from /tmp and /dev/shm alone, which
// have a size; a second system call filter answers EPERM to all else, and to System V's semaphores and messages, which no
// process's pages hold.
#define _GNU_SOURCE
#include "sandbox.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define EQUAL(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (yes), (no))
#define ANY_BIT(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (value), (yes), (no))
#define RETURN(value) BPF_STMT(BPF_RET | BPF_K, (value))

void forbid_uncounted_memory(bool traces) {
  struct sock_filter code[] = {
      // The other filter has turned away calls of other architectures.
      LOAD(nr),
      EQUAL(SYS_shmget, 9, 0),
      EQUAL(SYS_semget, 8, 0),
      EQUAL(SYS_msgget, 7, 0),
      // A proxy puts code into such files; its functions have a filter of their own.
      EQUAL(traces ? SYS_shmget : SYS_memfd_create, 6, 0),
      EQUAL(SYS_mmap, 1, 0),
      RETURN(SECCOMP_RET_ALLOW),
      LOAD(args[3]),
      // MAP_SHARED_VALIDATE has the bit, too.
      ANY_BIT(MAP_SHARED, 0, 1),
      ANY_BIT(MAP_ANONYMOUS, 1, 0),
      RETURN(SECCOMP_RET_ALLOW),
      RETURN(SECCOMP_RET_ERRNO | EPERM),
  };
  struct sock_fprog program = {sizeof code / sizeof *code, code};
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) < 0) fail("filter", errno, "shared memory");
}
