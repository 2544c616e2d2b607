// The system call filter of a pre-warmer: one, static, on every thread, before Ready. It cannot be removed, so that
// what depends on the function at hand is left to the proxy (SECCOMP_RET_TRACE), which sees the call before it is
// made; with no proxy attached such a call fails with ENOSYS. So do calls that are not on the list of system_calls.h.
#define _GNU_SOURCE
#include "../system_calls.h"
#include "prewarmer.h"

#include <asm/sockios.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

// No function needs these: EPERM. They reach other processes or the kernel, or leave what no rollback removes.
static const int denied[] = {
    // tracing and other processes
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp, NR_pidfd_getfd, NR_pidfd_send_signal,
    NR_process_madvise, NR_process_mrelease, SYS_move_pages, SYS_migrate_pages, SYS_perf_event_open,
    // mounts, namespaces, privileges
    SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, NR_open_tree, NR_move_mount, NR_fsopen, NR_fsconfig,
    NR_fsmount, NR_fspick, NR_mount_setattr, NR_statmount, NR_listmount, NR_open_tree_attr, SYS_unshare, SYS_setns,
    SYS_setuid, SYS_setgid, SYS_setreuid, SYS_setregid, SYS_setresuid, SYS_setresgid, SYS_setgroups, SYS_setfsuid,
    SYS_setfsgid, SYS_capset, SYS_seccomp, NR_landlock_create_ruleset, NR_landlock_restrict_self, SYS_personality,
    NR_lsm_set_self_attr,
    // the kernel
    SYS_bpf, SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_kexec_file_load, SYS_reboot,
    SYS_swapon, SYS_swapoff, SYS_syslog, SYS_acct, SYS_quotactl, SYS_settimeofday, SYS_clock_settime,
    SYS_clock_adjtime, SYS_adjtimex, SYS_sethostname, SYS_setdomainname, SYS_vhangup, SYS_iopl, SYS_ioperm,
    SYS_modify_ldt, SYS_fanotify_init, SYS_open_by_handle_at, SYS_name_to_handle_at, SYS_lookup_dcookie,
    // memory and objects that outlive the function or hide from the proxy
    SYS_keyctl, SYS_add_key, SYS_request_key, SYS_userfaultfd, NR_io_uring_setup, NR_io_uring_enter,
    NR_io_uring_register, NR_memfd_secret, SYS_shmget, SYS_shmat, SYS_shmctl, SYS_semget, SYS_semctl, SYS_msgget,
    SYS_msgctl, SYS_mq_open, SYS_remap_file_pages, SYS_set_mempolicy, SYS_mbind, NR_set_mempolicy_home_node, SYS_mlock, SYS_mlock2, SYS_mlockall,
    SYS_io_setup, NR_mseal, SYS_pkey_alloc, SYS_pkey_free,
};

// The proxy decides (native/inject/policy.cpp).
static const int traced[] = {
    SYS_execve, SYS_execveat, SYS_fork, SYS_vfork, SYS_exit, SYS_exit_group, SYS_kill, SYS_tkill, SYS_tgkill,
    SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_chdir, SYS_fchdir, SYS_umask, SYS_setrlimit, SYS_setpriority,
    SYS_setsid, SYS_setpgid, SYS_ioprio_set, SYS_sched_setaffinity, SYS_sched_setscheduler, SYS_sched_setparam,
    SYS_sched_setattr, SYS_timer_create, SYS_set_tid_address,
};

// What changes mappings: where none ran, the proxy need not compare them.
static const int mapping[] = {
    SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_pkey_mprotect, SYS_brk, SYS_madvise,
};

// Advice after which a page looks as it was and is not: emptied whenever the kernel needs memory, or no page at all. EINVAL,
// as of a kernel that does not know it, so that allocators take another way.
static const int refused_advice[] = {8 /* MADV_FREE */, 102 /* MADV_GUARD_INSTALL */};
// Advice that stays with a mapping, and that no list of mappings shows: the proxy decides.
static const int lasting_advice[] = {MADV_DONTFORK, MADV_MERGEABLE, 18 /* MADV_WIPEONFORK */};

// Commands that change what a descriptor refers to, which the pre-warmer's pipes are shared by: an owner and a signal, leases,
// the size of a pipe. No list shows them all: the proxy decides.
static const int lasting_commands[] = {F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY, F_SETPIPE_SZ,
                                       1036 /* F_SET_RW_HINT */, 1038 /* F_SET_FILE_RW_HINT */};
static const int lasting_requests[] = {FIOSETOWN, SIOCSPGRP};

// Options of arch_prctl that change the process for good: faulting CPUID, tagged addresses, shadow stacks.
static const int refused_arch[] = {0x1012, 0x4002, 0x5001, 0x5002, 0x5003, 0x5004};

// Options of prctl that leave nothing behind, or only a thread's name.
static const int prctl_options[] = {PR_SET_NAME, PR_GET_NAME, PR_GET_DUMPABLE, PR_CAPBSET_READ, 0x53564d41};

static const int families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};

#define COUNT(list) (sizeof(list) / sizeof *(list))
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define LOAD_LOW(index) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[index]))
#define LOAD_HIGH(index) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[index]) + 4)
#define EQUAL(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)(value), (yes), (no))
#define ANY_BIT(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (unsigned)(value), (yes), (no))
#define RETURN(value) BPF_STMT(BPF_RET | BPF_K, (value))
#define DENY RETURN(SECCOMP_RET_ERRNO | EPERM)
#define TRACE RETURN(SECCOMP_RET_TRACE)
#define ALLOW RETURN(SECCOMP_RET_ALLOW)

enum { MAX_INSTRUCTIONS = 512 + MAX_LISTED };

struct program {
  struct sock_filter code[MAX_INSTRUCTIONS];
  unsigned short length;
};

static void emit(struct program *program, struct sock_filter instruction) {
  if (program->length == MAX_INSTRUCTIONS) gw_fail("system call filter", E2BIG);
  program->code[program->length++] = instruction;
}
#define EMIT(...) emit(program, (struct sock_filter)__VA_ARGS__)

static void answer_each(struct program *program, const int *calls, size_t count, unsigned answer) {
  for (size_t i = 0; i < count; i++) {
    EMIT(EQUAL(calls[i], 0, 1));
    EMIT(RETURN(answer));
  }
}

// For one call: `answer` where the low half of an argument is one of `values`; otherwise, and for other calls, falls through.
static void answer_value(struct program *program, int call, int index, const int *values, size_t count, unsigned answer) {
  EMIT(EQUAL(call, 0, (unsigned char)(count + 4)));
  EMIT(LOAD_LOW(index));
  for (size_t i = 0; i < count; i++) EMIT(EQUAL(values[i], (unsigned char)(count - i + 1), 0));
  EMIT(LOAD(nr));
  EMIT(BPF_STMT(BPF_JMP | BPF_JA, 1));
  EMIT(RETURN(answer));
}

static void trace_executable(struct program *program) {
  const int executable[][2] = {{SYS_mmap, 2}, {SYS_mprotect, 2}, {SYS_pkey_mprotect, 2}};
  for (size_t i = 0; i < COUNT(executable); i++) {
    EMIT(EQUAL(executable[i][0], 0, 4));
    EMIT(LOAD_LOW(executable[i][1]));
    EMIT(ANY_BIT(PROT_EXEC, 0, 1));
    EMIT(TRACE);
    EMIT(ALLOW);
  }
}

// Calls whose answer depends on an argument; each ends in a return, and falls through for other calls.
static void answer_by_argument(struct program *program) {
  EMIT(EQUAL(SYS_clone, 0, 6));
  EMIT(LOAD_LOW(0));
  EMIT(ANY_BIT(CLONE_UNTRACED | CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
                   CLONE_NEWNET | CLONE_NEWCGROUP,
               0, 1));
  EMIT(DENY);
  EMIT(ANY_BIT(CLONE_THREAD, 1, 0));
  EMIT(TRACE);
  EMIT(ALLOW);
  EMIT(EQUAL(SYS_prlimit64, 0, 6)); // getrlimit is this with no new limit.
  EMIT(LOAD_LOW(2));
  EMIT(EQUAL(0, 0, 2));
  EMIT(LOAD_HIGH(2));
  EMIT(EQUAL(0, 1, 0));
  EMIT(TRACE);
  EMIT(ALLOW);
  EMIT(EQUAL(SYS_ioctl, 0, 4));
  EMIT(LOAD_LOW(1));
  EMIT(EQUAL(TIOCSTI, 0, 1));
  EMIT(DENY);
  EMIT(ALLOW);
  EMIT(EQUAL(SYS_prctl, 0, (unsigned char)(COUNT(prctl_options) + 3)));
  EMIT(LOAD_LOW(0));
  for (size_t i = 0; i < COUNT(prctl_options); i++)
    EMIT(EQUAL(prctl_options[i], (unsigned char)(COUNT(prctl_options) - i), 0));
  EMIT(DENY);
  EMIT(ALLOW);
  EMIT(EQUAL(SYS_socket, 0, (unsigned char)(COUNT(families) + 3)));
  EMIT(LOAD_LOW(0));
  for (size_t i = 0; i < COUNT(families); i++) EMIT(EQUAL(families[i], (unsigned char)(COUNT(families) - i), 0));
  EMIT(RETURN(SECCOMP_RET_ERRNO | EAFNOSUPPORT));
  EMIT(ALLOW);
}

void gw_install_filter(int trace_mappings) {
  struct program whole = {.length = 0}, *program = &whole;
  // Calls of another architecture (32-bit, x32) have other numbers: none is let through.
  EMIT(LOAD(arch));
  EMIT(EQUAL(AUDIT_ARCH_X86_64, 1, 0));
  EMIT(DENY);
  EMIT(LOAD(nr));
  EMIT(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1));
  EMIT(DENY);
  answer_value(program, SYS_madvise, 2, refused_advice, COUNT(refused_advice), SECCOMP_RET_ERRNO | EINVAL);
  answer_value(program, SYS_madvise, 2, lasting_advice, COUNT(lasting_advice), SECCOMP_RET_TRACE);
  answer_value(program, SYS_fcntl, 1, lasting_commands, COUNT(lasting_commands), SECCOMP_RET_TRACE);
  answer_value(program, SYS_ioctl, 1, lasting_requests, COUNT(lasting_requests), SECCOMP_RET_TRACE);
  answer_value(program, SYS_arch_prctl, 0, refused_arch, COUNT(refused_arch), SECCOMP_RET_ERRNO | EPERM);
  if (trace_mappings && !gw_can_be_checkpointed()) answer_each(program, mapping, COUNT(mapping), SECCOMP_RET_TRACE);
  else trace_executable(program);
  answer_by_argument(program);
  // clone3 takes its flags in memory, out of the filter's sight; ENOSYS makes C libraries use clone.
  EMIT(EQUAL(NR_clone3, 0, 1));
  EMIT(RETURN(SECCOMP_RET_ERRNO | ENOSYS));
  answer_each(program, denied, COUNT(denied), SECCOMP_RET_ERRNO | EPERM);
  answer_each(program, traced, COUNT(traced), SECCOMP_RET_TRACE);
  if (program->length + MAX_LISTED > MAX_INSTRUCTIONS) gw_fail("system call filter", E2BIG);
  program->length += allow_listed(program->code + program->length);
  struct sock_fprog installed = {whole.length, whole.code};
  long result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &installed);
  if (result != 0) gw_fail("system call filter", result < 0 ? errno : EBUSY);
}
