// The system call filter (seccomp, classic BPF): what is on the list of system_calls.h is allowed. Of the rest, calls that
// reach beyond the sandbox are answered EPERM, as they are without privileges, and others ENOSYS.
#define _GNU_SOURCE
#include "../system_calls.h"
#include "sandbox.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#error "The system call filter knows x86_64 and aarch64 only."
#endif

static const int denied[] = {
    SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, NR_open_tree, NR_move_mount, NR_fsopen, NR_fsconfig,
    NR_fsmount, NR_fspick, NR_mount_setattr, NR_statmount, NR_listmount, NR_open_tree_attr, SYS_unshare, SYS_setns,
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp, NR_pidfd_getfd, SYS_bpf, SYS_perf_event_open,
    SYS_userfaultfd, NR_io_uring_setup, NR_io_uring_enter, NR_io_uring_register, NR_memfd_secret, SYS_keyctl,
    SYS_add_key, SYS_request_key, SYS_kexec_load, SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_swapon,
    SYS_swapoff, SYS_reboot, SYS_syslog, SYS_acct, SYS_quotactl, SYS_nfsservctl, SYS_settimeofday, SYS_clock_settime,
    SYS_clock_adjtime, SYS_adjtimex, SYS_open_by_handle_at, SYS_name_to_handle_at, SYS_lookup_dcookie,
    SYS_fanotify_init, SYS_vhangup, SYS_sethostname, SYS_setdomainname, SYS_move_pages, SYS_migrate_pages,
#ifdef SYS_kexec_file_load
    SYS_kexec_file_load,
#endif
#ifdef __x86_64__
    SYS_iopl, SYS_ioperm, SYS_modify_ldt, SYS_uselib, SYS_ustat, SYS_sysfs, SYS__sysctl, SYS_create_module,
    SYS_get_kernel_syms, SYS_query_module,
#endif
};

// Address families that a function may use: the others reach the hypervisor or rarely tested kernel code.
static const int families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};

// Linux, with 32-bit addresses or the name of an old release; and the question which one it is.
static const unsigned personalities[] = {0, 0x8, 0x20000, 0x20008, 0xffffffff};

enum {
  DENIED = sizeof denied / sizeof *denied,
  FAMILIES = sizeof families / sizeof *families,
  PERSONALITIES = sizeof personalities / sizeof *personalities,
};
enum { MAX_INSTRUCTIONS = DENIED * 2 + FAMILIES + PERSONALITIES + MAX_LISTED + 64 };

static const unsigned namespace_flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
                                        CLONE_NEWNET | CLONE_NEWCGROUP | 0x80 /* CLONE_NEWTIME */;

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define LOAD_ARG(index) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[index]))
#define EQUAL(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (yes), (no))
#define RETURN(value) BPF_STMT(BPF_RET | BPF_K, (value))
#define DENY RETURN(SECCOMP_RET_ERRNO | EPERM)
#define ALLOW RETURN(SECCOMP_RET_ALLOW)

// What a proxy needs that injects functions into processes of its own.
static bool is_tracing(int call) { return call == SYS_ptrace || call == SYS_userfaultfd; }

void install_filter(bool traces) {
  struct sock_filter code[MAX_INSTRUCTIONS];
  unsigned short length = 0;
#define EMIT(...) code[length++] = (struct sock_filter)__VA_ARGS__
  // Calls of another architecture (32-bit, x32) have other numbers: none is let through.
  EMIT(LOAD(arch));
  EMIT(EQUAL(ARCH, 1, 0));
  EMIT(DENY);
  EMIT(LOAD(nr));
#ifdef __x86_64__
  EMIT(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1));
  EMIT(DENY);
#endif
  for (int i = 0; i < DENIED; i++) {
    if (traces && is_tracing(denied[i])) continue;
    EMIT(EQUAL((unsigned)denied[i], 0, 1));
    EMIT(DENY);
  }
  if (traces) {
    EMIT(EQUAL(SYS_ptrace, 1, 0));
    EMIT(EQUAL(SYS_userfaultfd, 0, 1));
    EMIT(ALLOW);
  }
  // clone3 takes its flags in memory, out of the filter's sight; ENOSYS makes C libraries use clone.
  EMIT(EQUAL(NR_clone3, 0, 1));
  EMIT(RETURN(SECCOMP_RET_ERRNO | ENOSYS));
  EMIT(EQUAL(SYS_clone, 0, 4));
  EMIT(LOAD_ARG(0));
  EMIT(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, namespace_flags, 0, 1));
  EMIT(DENY);
  EMIT(ALLOW);
  EMIT(EQUAL(SYS_ioctl, 0, 4));
  EMIT(LOAD_ARG(1));
  EMIT(EQUAL(TIOCSTI, 0, 1));
  EMIT(DENY);
  EMIT(ALLOW);
  EMIT(EQUAL(SYS_personality, 0, PERSONALITIES + 3));
  EMIT(LOAD_ARG(0));
  for (int i = 0; i < PERSONALITIES; i++) EMIT(EQUAL(personalities[i], (unsigned char)(PERSONALITIES - i), 0));
  EMIT(DENY);
  EMIT(ALLOW);
  EMIT(EQUAL(SYS_socket, 0, FAMILIES + 3));
  EMIT(LOAD_ARG(0));
  for (int i = 0; i < FAMILIES; i++) EMIT(EQUAL((unsigned)families[i], (unsigned char)(FAMILIES - i), 0));
  EMIT(RETURN(SECCOMP_RET_ERRNO | EAFNOSUPPORT));
  EMIT(ALLOW);
  length += allow_listed(code + length);
#undef EMIT
  struct sock_fprog program = {length, code};
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) < 0) fail("filter", errno, "seccomp");
}
