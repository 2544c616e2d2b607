// Order of events. L: launcher, S: the sandbox's first process, which becomes its init.
//
//   L  clones S into its namespaces; with cgroups v1 a helper does, which has joined them and ends then
//   L  builds the network                               S  begins its root, enters it
//   L  waits for the rest of the spec, writes the limits, passes the rest on
//   L  sends what is bound                              S  completes its root
//   S  "built"; L "joined"                              S  new cgroup namespace
//   S  new user namespace (with root: after the mounts, which only real root can make from a 0700 folder)
//   S  "unshared"; L maps the ids, reports ready        S  drops every privilege, starts the runtime
//   L  supervises
//
// A spec whose first message names no namespaces is waited for as a whole, before S is cloned. Where L may not copy
// mounts for S, S enters its root only when the root is complete.
#define _GNU_SOURCE
#include "sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP 0x200000000ULL
#endif
#ifndef SYS_clone3
#define SYS_clone3 435
#endif

// Laid out as struct clone_args, which older headers lack.
struct clone_arguments {
  uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, set_tid_size, cgroup;
};

static void send_mark(int channel, char mark) {
  if (send(channel, &mark, 1, MSG_NOSIGNAL) != 1) _exit(EXIT_SETUP_FAILED); // The other side has failed and said so.
}

static void await_mark(int channel, char mark) {
  char got;
  ssize_t count;
  do count = read(channel, &got, 1);
  while (count < 0 && errno == EINTR);
  if (count != 1 || got != mark) _exit(EXIT_SETUP_FAILED);
}

static void make_groups(const struct spec *spec) {
  for (int i = 0; i < spec->count; i++) {
    const struct step *step = &spec->steps[i];
    if (step->op == OP_MAKE_DIR && mkdir(step->args[0], 0755) < 0 && errno != EEXIST)
      fail("cgroup", errno, step->args[0]);
  }
}

static void join_groups(const struct spec *spec) {
  char path[PATH_MAX];
  for (int i = 0; i < spec->count; i++) {
    const struct step *step = &spec->steps[i];
    if (step->op != OP_JOIN) continue;
    snprintf(path, sizeof path, "%s/cgroup.procs", step->args[0]);
    if (write_file(path, "0") < 0) fail("cgroup", errno, path);
  }
}

static void prepare_host(const struct spec *spec) {
  for (int i = 0; i < spec->count; i++) {
    const struct step *step = &spec->steps[i];
    const char *path = step->args[0];
    if (step->op == OP_WRITE) {
      if (write_file(path, step->args[1]) < 0) fail("cgroup", errno, path);
    } else if (step->op == OP_OWN) {
      if (mkdir(path, 0700) < 0 && errno != EEXIST) fail("mount", errno, path);
      uid_t owner = spec->has_id ? spec->outer : 0;
      if (geteuid() == 0 && lchown(path, owner, owner) < 0) fail("mount", errno, path);
    }
  }
}

// So that the sandbox's user may open what it prints to by the paths /dev/stdout and /dev/stderr, where these are pipes.
static void give_output(const struct spec *spec) {
  if (!spec->has_id || geteuid() != 0) return; // They are the user's already.
  for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
    if (fchown(fd, spec->outer, spec->outer) < 0) fail("user", errno, "output");
  }
}

// Clones straight into the cgroup (v2) where the kernel can: moving a process costs it a grace period.
static pid_t start_child(int flags, const char *group, bool *joined) {
  // With CLONE_PARENT the child has the caller's signal.
  struct clone_arguments arguments = {.flags = (uint64_t)flags, .exit_signal = flags & CLONE_PARENT ? 0 : SIGCHLD};
  if (group != NULL) {
    int folder = open(group, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) fail("cgroup", errno, group);
    arguments.flags |= CLONE_INTO_CGROUP;
    arguments.cgroup = (uint64_t)folder;
    pid_t child = (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
    if (child >= 0) {
      if (child > 0) close(folder);
      *joined = true;
      return child;
    }
    close(folder);
    if (errno != ENOSYS && errno != E2BIG && errno != EINVAL) return -1;
  }
#if defined(__x86_64__) || defined(__aarch64__)
  return (pid_t)syscall(SYS_clone, (unsigned long)flags | SIGCHLD, 0, 0, 0, 0);
#endif
}

// What is cloned from here on is in the other namespace; this process is not.
static void join_pid_namespace(const struct spec *spec) {
  const struct step *step = find_step(spec, OP_JOIN_PID);
  if (step == NULL) return;
  int space = open(step->args[0], O_RDONLY | O_CLOEXEC);
  if (space < 0) fail("shared-pid", errno, step->args[0]);
  if (setns(space, CLONE_NEWPID) < 0) fail("shared-pid", errno, "setns");
  close(space);
}

// Starts the sandbox's first process, in its groups, as a child of this process, which stays outside of them: a sandbox
// that uses up its processors does not hold up its end. Returns its id, or 0 in the new process.
static pid_t start_sandbox(const struct spec *spec, int flags, bool *joined) {
  const struct step *group = find_step(spec, OP_JOIN_DIR);
  const char *folder = group == NULL ? NULL : group->args[0];
  if (find_step(spec, OP_JOIN) == NULL) {
    join_pid_namespace(spec);
    return start_child(flags, folder, joined);
  }
  int told[2];
  if (pipe2(told, O_CLOEXEC) < 0) fail("namespaces", errno, "pipe");
  pid_t helper = fork();
  if (helper < 0) fail("namespaces", errno, "fork");
  if (helper == 0) {
    join_groups(spec);
    join_pid_namespace(spec);
    pid_t child = start_child(flags | CLONE_PARENT, folder, joined);
    if (child < 0) fail("namespaces", errno, "clone");
    if (child == 0) return 0;
    if (write(told[1], &child, sizeof child) != sizeof child) _exit(EXIT_SETUP_FAILED);
    _exit(0);
  }
  close(told[1]);
  pid_t child = 0;
  // The helper has said why.
  if (read(told[0], &child, sizeof child) != sizeof child) _exit(EXIT_SETUP_FAILED);
  close(told[0]);
  while (waitpid(helper, NULL, 0) < 0 && errno == EINTR) continue;
  return child;
}

static void join_group(const char *folder, pid_t child) {
  char text[32], path[PATH_MAX];
  snprintf(text, sizeof text, "%d", child);
  snprintf(path, sizeof path, "%s/cgroup.procs", folder);
  if (write_file(path, text) < 0) fail("cgroup", errno, path);
}

// Ends if the sandbox's first process, which has said why, ends before there is more to read.
static void await_platform(int channel) {
  struct pollfd waits[2] = {{.fd = SOCKET_FD, .events = POLLIN}, {.fd = channel, .events = POLLIN}};
  while (poll(waits, 2, -1) < 0 && errno == EINTR) continue;
  if (waits[1].revents != 0) _exit(EXIT_SETUP_FAILED);
}

// The new /proc, and a look at the sandbox's sockets, handed to the launcher so that it can watch the sandbox's memory.
static void send_views(const struct spec *spec, int channel) {
  int views[2] = {open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC), -1};
  if (views[0] < 0) fail("proc", errno, "/proc");
  if (spec->namespaces & CLONE_NEWNET) views[1] = open_diagnosis();
  send_descriptors(channel, views, views[1] >= 0 ? 2 : 1);
  close(views[0]);
  if (views[1] >= 0) close(views[1]);
}

static void receive_views(int channel, struct watched *watched) {
  int views[2] = {-1, -1};
  receive_descriptors(channel, views, 2);
  watched->proc_folder = views[0];
  watched->diagnosis = views[1];
}

_Noreturn static void sandbox_process(struct spec *spec, int channel, bool early_user) {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0) fail("death-signal", errno, "prctl");
  (void)!write_file("/proc/self/oom_score_adj", "300");
  int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null < 0 || dup2(null, STDIN_FILENO) < 0) fail("mount", errno, "/dev/null");
  if (early_user) await_mark(channel, 'm');
  if (spec->namespaces & CLONE_NEWNET) raise_loopback();
  const struct step *hostname = find_step(spec, OP_HOSTNAME);
  if ((spec->namespaces & CLONE_NEWUTS) && hostname != NULL &&
      sethostname(hostname->args[0], strlen(hostname->args[0])) < 0)
    fail("uts", errno, "sethostname");
  bool mounts = spec->namespaces & CLONE_NEWNS;
  if (mounts) build_root(spec, 0, channel);
  if (spec->command[0] == NULL) {
    if (spec->enters_ahead) enter_root(spec);
    int first = spec->count;
    read_spec(spec, channel);
    if (mounts) build_root(spec, first, channel);
  }
  if (mounts) {
    enter_root(spec);
    close_root();
  }
  if (find_step(spec, OP_WATCH) != NULL) send_views(spec, channel);
  send_mark(channel, 'b');
  await_mark(channel, 'j');
  // Goes before the processes that it is to end and to reap, which get the usual priority. Only root may say so.
  (void)setpriority(PRIO_PROCESS, 0, PRIO_MIN);
  if ((spec->namespaces & CLONE_NEWCGROUP) && unshare(CLONE_NEWCGROUP) < 0) fail("cgroup-view", errno, "unshare");
  if (!early_user) {
    if (geteuid() == 0 && setgroups(0, NULL) < 0) fail("user", errno, "setgroups");
    if (spec->namespaces & CLONE_NEWUSER) {
      if (unshare(CLONE_NEWUSER) < 0) fail("user", errno, "unshare");
      send_mark(channel, 'u');
      await_mark(channel, 'm');
    }
  }
  yield_to_platform();
  become_unprivileged(spec);
  drop_privileges(spec);
  run_init(spec, channel);
}

int main(int count, char **words) {
  // What the platform runs in a sandbox to see which measures the host allows.
  if (count > 1 && strcmp(words[1], "--true") == 0) return 0;
  // What the platform calls for itself, as Node.js has no netlink.
  if (count == 5 && strcmp(words[1], "--make-link") == 0) {
    make_host_link(words[2], words[3], words[4]);
    return 0;
  }
  if (count == 3 && strcmp(words[1], "--remove-link") == 0) {
    remove_host_link(words[2]);
    return 0;
  }
  // The platform may go before others on the processors; functions do not.
  if (getpriority(PRIO_PROCESS, 0) < 0) setpriority(PRIO_PROCESS, 0, 0);
  // Ctrl-C in the platform's terminal is for the platform alone, which lets what runs end.
  (void)setpgid(0, 0);
  if (count == 4 && strcmp(words[2], "--hold") == 0) return hold((uid_t)number(words[3]));
  pid_t platform = getppid();
  // Blocked so that they wait for supervise(): a frozen sandbox must be thawed to die, on any request for its end.
  sigset_t handled;
  sigemptyset(&handled);
  sigaddset(&handled, SIGTERM);
  sigaddset(&handled, SIGCHLD);
  sigprocmask(SIG_BLOCK, &handled, NULL);
  signal(SIGPIPE, SIG_DFL);
  if (prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0) < 0) fail("death-signal", errno, "prctl");
  if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0) fail("death-signal", errno, "subreaper");
  if (getppid() != platform) return EXIT_SETUP_FAILED;

  // The kernel is to pick the function, not its keeper. Only root may say so.
  (void)!write_file("/proc/self/oom_score_adj", "-1000");
  static struct spec spec;
  do {
    read_spec(&spec, SOCKET_FD);
    if (spec.command[0] == NULL) make_groups(&spec);
  } while (spec.command[0] == NULL && spec.namespaces == 0);
  bool ahead = spec.command[0] == NULL;
  if (!ahead) prepare_host(&spec);
  give_output(&spec);

  int channel[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel) < 0) fail("spec", errno, "socketpair");
  const struct step *group = find_step(&spec, OP_JOIN_DIR);
  // Without root the user namespace comes first, for it grants the right to the others.
  bool early_user = (spec.namespaces & CLONE_NEWUSER) && geteuid() != 0;
  int flags = spec.namespaces & ~CLONE_NEWCGROUP & ~(early_user ? 0 : CLONE_NEWUSER);
  spec.enters_ahead = ahead && (spec.namespaces & CLONE_NEWNS) && !early_user && can_copy_mounts();
  bool joined = false;
  pid_t child = start_sandbox(&spec, flags, &joined);
  if (child < 0) fail("namespaces", errno, "clone");
  if (child == 0) {
    close(channel[0]);
    sandbox_process(&spec, channel[1], early_user);
  }
  close(channel[1]);
  close(STDOUT_FILENO);
  close(STDERR_FILENO);

  if (early_user) {
    map_ids(&spec, child);
    send_mark(channel[0], 'm');
  }
  if (group != NULL && !joined) join_group(group->args[0], child);
  if (find_step(&spec, OP_VETH) != NULL) build_network(&spec, child);
  if (ahead) {
    await_platform(channel[0]);
    int first = spec.count;
    read_spec(&spec, SOCKET_FD);
    if (spec.command[0] == NULL) fail("spec", 0, "a third message");
    prepare_host(&spec);
    forward_spec(&spec, channel[0]);
    if (spec.enters_ahead) send_binds(&spec, first, channel[0]);
  }
  struct watched watched = {.proc_folder = -1, .diagnosis = -1};
  if (find_step(&spec, OP_WATCH) != NULL) receive_views(channel[0], &watched);
  await_mark(channel[0], 'b');
  if (watched.proc_folder >= 0) watch_tmpfs(&spec, child, &watched);
  send_mark(channel[0], 'j');
  if ((spec.namespaces & CLONE_NEWUSER) && !early_user) {
    await_mark(channel[0], 'u');
    map_ids(&spec, child);
    report_ready();
    send_mark(channel[0], 'm');
  } else {
    report_ready();
  }
  close(SOCKET_FD);
  if (find_step(&spec, OP_KEEP_RUNS) != NULL) close(RUNS_FD);
  // The channel stays open: its end tells init that the launcher is gone.
  return supervise(&spec, child, &watched);
}
