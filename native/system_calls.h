// What the system call filters share: numbers, and the list of what they allow.
#ifndef GPUWHISK_SYSTEM_CALLS_H
#define GPUWHISK_SYSTEM_CALLS_H

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>

// Newer than some C library's headers; their numbers are the same on every architecture since Linux 5.1.

enum {
  NR_pidfd_send_signal = 424,
  NR_io_uring_setup = 425,
  NR_io_uring_enter = 426,
  NR_io_uring_register = 427,
  NR_open_tree = 428,
  NR_move_mount = 429,
  NR_fsopen = 430,
  NR_fsconfig = 431,
  NR_fsmount = 432,
  NR_fspick = 433,
  NR_pidfd_open = 434,
  NR_clone3 = 435,
  NR_close_range = 436,
  NR_openat2 = 437,
  NR_pidfd_getfd = 438,
  NR_faccessat2 = 439,
  NR_process_madvise = 440,
  NR_epoll_pwait2 = 441,
  NR_mount_setattr = 442,
  NR_landlock_create_ruleset = 444,
  NR_landlock_add_rule = 445,
  NR_landlock_restrict_self = 446,
  NR_memfd_secret = 447,
  NR_process_mrelease = 448,
  NR_futex_waitv = 449,
  NR_set_mempolicy_home_node = 450,
  NR_cachestat = 451,
  NR_fchmodat2 = 452,
  NR_map_shadow_stack = 453,
  NR_futex_wake = 454,
  NR_futex_wait = 455,
  NR_futex_requeue = 456,
  NR_statmount = 457,
  NR_listmount = 458,
  NR_lsm_set_self_attr = 460,
  NR_mseal = 462,
  NR_setxattrat = 463,
  NR_getxattrat = 464,
  NR_listxattrat = 465,
  NR_removexattrat = 466,
  NR_open_tree_attr = 467,
};

// What programs need: the calls that container engines allow by default, and those that place a process's own memory on
// nodes (mbind). Each filter denies some of them before it comes to this list.
static const int allowed_calls[] = {
    // files
    SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_pread64, SYS_pwrite64, SYS_preadv, SYS_pwritev, SYS_preadv2,
    SYS_pwritev2, SYS_lseek, SYS_openat, NR_openat2, SYS_close, NR_close_range, SYS_dup, SYS_dup3, SYS_fcntl, SYS_flock,
    SYS_ioctl, SYS_fsync, SYS_fdatasync, SYS_sync, SYS_syncfs, SYS_sync_file_range, SYS_truncate, SYS_ftruncate,
    SYS_fallocate, SYS_fadvise64, SYS_readahead, SYS_copy_file_range, SYS_sendfile, SYS_splice, SYS_tee, SYS_vmsplice,
    SYS_pipe2, SYS_newfstatat, SYS_fstat, SYS_statx, SYS_statfs, SYS_fstatfs, SYS_getdents64, SYS_getcwd, SYS_chdir,
    SYS_fchdir, SYS_mkdirat, SYS_mknodat, SYS_unlinkat, SYS_symlinkat, SYS_linkat, SYS_renameat, SYS_renameat2,
    SYS_readlinkat, SYS_faccessat, NR_faccessat2, SYS_fchmod, SYS_fchmodat, NR_fchmodat2, SYS_fchown, SYS_fchownat,
    SYS_utimensat, SYS_umask, SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr, NR_setxattrat, SYS_getxattr, SYS_lgetxattr,
    SYS_fgetxattr, NR_getxattrat, SYS_listxattr, SYS_llistxattr, SYS_flistxattr, NR_listxattrat, SYS_removexattr,
    SYS_lremovexattr, SYS_fremovexattr, NR_removexattrat, SYS_inotify_init1, SYS_inotify_add_watch,
    SYS_inotify_rm_watch, SYS_fanotify_mark, NR_cachestat,
    // waiting, and what is waited for
    SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_pwait, NR_epoll_pwait2, SYS_ppoll, SYS_pselect6, SYS_eventfd2,
    SYS_signalfd4, SYS_timerfd_create, SYS_timerfd_settime, SYS_timerfd_gettime, SYS_io_setup, SYS_io_destroy,
    SYS_io_submit, SYS_io_cancel, SYS_io_getevents, SYS_io_pgetevents, SYS_futex, NR_futex_waitv, NR_futex_wake,
    NR_futex_wait, NR_futex_requeue, SYS_set_robust_list, SYS_get_robust_list, SYS_rseq, SYS_membarrier,
    SYS_restart_syscall,
    // sockets
    SYS_socket, SYS_socketpair, SYS_bind, SYS_listen, SYS_accept, SYS_accept4, SYS_connect, SYS_getsockname,
    SYS_getpeername, SYS_setsockopt, SYS_getsockopt, SYS_shutdown, SYS_sendto, SYS_sendmsg, SYS_sendmmsg, SYS_recvfrom,
    SYS_recvmsg, SYS_recvmmsg,
    // memory
    SYS_brk, SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_pkey_mprotect, SYS_pkey_alloc, SYS_pkey_free,
    SYS_madvise, SYS_mincore, SYS_msync, SYS_mlock, SYS_mlock2, SYS_munlock, SYS_mlockall, SYS_munlockall,
    SYS_remap_file_pages, SYS_memfd_create, NR_map_shadow_stack, NR_mseal, SYS_get_mempolicy, SYS_set_mempolicy,
    SYS_mbind, SYS_shmget, SYS_shmat, SYS_shmdt, SYS_shmctl, SYS_semget, SYS_semop, SYS_semtimedop, SYS_semctl,
    SYS_msgget, SYS_msgsnd, SYS_msgrcv, SYS_msgctl, SYS_mq_open, SYS_mq_unlink, SYS_mq_timedsend, SYS_mq_timedreceive,
    SYS_mq_notify, SYS_mq_getsetattr,
    // processes and signals
    SYS_clone, SYS_execve, SYS_execveat, SYS_exit, SYS_exit_group, SYS_wait4, SYS_waitid, SYS_kill, SYS_tkill,
    SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, NR_pidfd_open, NR_pidfd_send_signal, NR_process_mrelease,
    SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigpending, SYS_rt_sigsuspend, SYS_rt_sigtimedwait, SYS_rt_sigreturn,
    SYS_sigaltstack, SYS_getpid, SYS_getppid, SYS_gettid, SYS_getpgid, SYS_setpgid, SYS_getsid, SYS_setsid,
    SYS_set_tid_address, SYS_prctl, SYS_personality, SYS_seccomp, NR_landlock_create_ruleset, NR_landlock_add_rule,
    NR_landlock_restrict_self, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid, SYS_getresuid, SYS_getresgid,
    SYS_getgroups, SYS_setuid, SYS_setgid, SYS_setreuid, SYS_setregid, SYS_setresuid, SYS_setresgid, SYS_setfsuid,
    SYS_setfsgid, SYS_setgroups, SYS_capget, SYS_capset,
    // processors, limits, clocks
    SYS_sched_yield, SYS_sched_getaffinity, SYS_sched_setaffinity, SYS_sched_getscheduler, SYS_sched_setscheduler,
    SYS_sched_getparam, SYS_sched_setparam, SYS_sched_getattr, SYS_sched_setattr, SYS_sched_get_priority_max,
    SYS_sched_get_priority_min, SYS_sched_rr_get_interval, SYS_getpriority, SYS_setpriority, SYS_ioprio_get,
    SYS_ioprio_set, SYS_getcpu, SYS_getrlimit, SYS_setrlimit, SYS_prlimit64, SYS_getrusage, SYS_times, SYS_sysinfo,
    SYS_uname, SYS_getrandom, SYS_gettimeofday, SYS_clock_gettime, SYS_clock_getres, SYS_clock_nanosleep, SYS_nanosleep,
    SYS_getitimer, SYS_setitimer, SYS_timer_create, SYS_timer_delete, SYS_timer_settime, SYS_timer_gettime,
    SYS_timer_getoverrun,
#ifdef __x86_64__
    SYS_open, SYS_creat, SYS_stat, SYS_lstat, SYS_access, SYS_pipe, SYS_dup2, SYS_select, SYS_poll, SYS_epoll_create,
    SYS_epoll_wait, SYS_eventfd, SYS_signalfd, SYS_inotify_init, SYS_getdents, SYS_mkdir, SYS_rmdir, SYS_mknod,
    SYS_unlink, SYS_symlink, SYS_link, SYS_rename, SYS_readlink, SYS_chmod, SYS_chown, SYS_lchown, SYS_utime,
    SYS_utimes, SYS_futimesat, SYS_fork, SYS_vfork, SYS_getpgrp, SYS_pause, SYS_alarm, SYS_time, SYS_arch_prctl,
    SYS_get_thread_area, SYS_set_thread_area,
#endif
};

enum { ALLOWED_CALLS = sizeof allowed_calls / sizeof *allowed_calls };
/** Instructions that `allow_listed` makes, at most. */
enum { MAX_LISTED = 4 * ALLOWED_CALLS + 1 };

/**
 * The end of a filter whose accumulator holds the number of the call: it is allowed if it is listed, and otherwise fails with
 * ENOSYS, as on a kernel that does not know it, so that C libraries take another way. Returns the number of instructions.
 */
static inline unsigned short allow_listed(struct sock_filter *code) {
  const struct sock_filter unknown = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
  const struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  unsigned sorted[ALLOWED_CALLS];
  for (size_t i = 0; i < ALLOWED_CALLS; i++) {
    size_t at = i;
    for (; at > 0 && sorted[at - 1] > (unsigned)allowed_calls[i]; at--) sorted[at] = sorted[at - 1];
    sorted[at] = (unsigned)allowed_calls[i];
  }
  unsigned short length = 0;
  for (size_t first = 0, next; first < ALLOWED_CALLS; first = next) {
    for (next = first + 1; next < ALLOWED_CALLS && sorted[next] <= sorted[next - 1] + 1; next++) continue;
    code[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, sorted[first], 1, 0);
    code[length++] = unknown;
    code[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, sorted[next - 1], 1, 0);
    code[length++] = allow;
  }
  code[length++] = unknown;
  return length;
}

#endif
