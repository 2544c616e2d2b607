// A PID namespace that several sandboxes share.
//
//   platform ── holder ── PID 1 of the namespace
//
// Others join by the holder's /proc/<pid>/ns/pid_for_children. PID 1 reaps what loses its parent, and nothing else; its
// end is the end of all processes of the namespace. It ends with the holder, and the holder with the platform.
#define _GNU_SOURCE
#include "sandbox.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// Complaints go to the standard error: there is no descriptor 3.
static void require(bool done, const char *measure, const char *detail) {
  if (!done) fail(measure, errno, detail);
}

_Noreturn static void reap(uid_t user, int holder) {
  // Ignored children are reaped by the kernel.
  signal(SIGCHLD, SIG_IGN);
  require(chdir("/") == 0, "mount", "/");
  require(setgroups(0, NULL) == 0, "user", "setgroups");
  require(setresgid(user, user, user) == 0, "user", "setresgid");
  require(setresuid(user, user, user) == 0, "user", "setresuid");
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0, 0, 0}};
  require(syscall(SYS_capset, &header, none) == 0, "capabilities", "capset");
  require(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no-new-privs", "prctl");
  require(prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0, "death-signal", "prctl");
  install_filter(false);
  // The holder's end may have come before the signal was asked for.
  struct pollfd gone = {.fd = holder, .events = 0};
  if (poll(&gone, 1, 0) != 0) _exit(EXIT_SETUP_FAILED);
  const char mark = 'r';
  if (write(holder, &mark, 1) != 1) _exit(EXIT_SETUP_FAILED);
  close(STDIN_FILENO);
  close(STDOUT_FILENO);
  close(STDERR_FILENO);
  for (;;) pause();
}

int hold(uid_t user) {
  pid_t platform = getppid();
  require(prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0, "death-signal", "prctl");
  if (getppid() != platform) return EXIT_SETUP_FAILED;
  signal(SIGPIPE, SIG_DFL);
  (void)!write_file("/proc/self/oom_score_adj", "-1000");
  require(unshare(CLONE_NEWPID) == 0, "namespaces", "unshare");
  int channel[2];
  require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel) == 0, "spec", "socketpair");
  pid_t first = fork();
  if (first < 0) return EXIT_SETUP_FAILED;
  if (first == 0) {
    close(channel[0]);
    reap(user, channel[1]);
  }
  close(channel[1]);
  char mark;
  if (read(channel[0], &mark, 1) != 1) return EXIT_SETUP_FAILED;
  if (dprintf(STDOUT_FILENO, "holding\n") < 0) return EXIT_SETUP_FAILED;
  int status;
  while (waitpid(first, &status, 0) < 0) {
    if (errno != EINTR) return EXIT_SETUP_FAILED;
  }
  return 0;
}
