// The sandbox's first process: starts the runtime, reaps what is orphaned, ends with the runtime's status. It is PID 1,
// unless the PID namespace is shared with others.
#define _GNU_SOURCE
#include "sandbox.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

static void close_from(int first) {
  if (syscall(SYS_close_range, first, ~0U, 0) == 0) return;
  for (int fd = first; fd < 1024; fd++) close(fd);
}

_Noreturn static void run_command(const struct spec *spec) {
  // Not entered by init, which what is in it cannot signal then.
  if (find_step(spec, OP_DOMAIN) != NULL) enter_domain();
  // Init goes before it.
  if (getpriority(PRIO_PROCESS, 0) < 0 && setpriority(PRIO_PROCESS, 0, 0) < 0) fail("scheduling", errno, "setpriority");
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  setsid();
  close_from(1 + (find_step(spec, OP_KEEP_RUNS) != NULL ? RUNS_FD : SOCKET_FD));
  execve(spec->command[0], spec->command, spec->environment);
  fail("exec", errno, spec->command[0]);
}

static int status_of(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

// Where there is no freezer. All that it may signal in its PID namespace is the sandbox's: the user is. Queued signals of
// one number keep their order, so the last request wins.
static void pause_or_resume(int signal_number, siginfo_t *info, void *context) {
  (void)signal_number;
  (void)context;
  kill(-1, info->si_value.sival_int == COMMAND_PAUSE ? SIGSTOP : SIGCONT);
}

void run_init(const struct spec *spec, int launcher) {
  const struct step *cwd = find_step(spec, OP_CWD);
  if (cwd != NULL && chdir(cwd->args[0]) < 0) fail("mount", errno, cwd->args[0]);
  // Changing the user cleared it.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0) fail("death-signal", errno, "prctl");
  struct pollfd gone = {.fd = launcher, .events = 0};
  if (poll(&gone, 1, 0) != 0) _exit(EXIT_SETUP_FAILED);
  bool keep_socket = find_step(spec, OP_KEEP_SOCKET) != NULL;
  if (!has_init(spec)) {
    if (!keep_socket) close(SOCKET_FD);
    run_command(spec);
  }

  if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0) fail("death-signal", errno, "subreaper");
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  pid_t runtime = fork();
  if (runtime < 0) fail("pid", errno, "fork");
  if (runtime == 0) {
    // Without it the runtime would see the platform's socket, which is for the launcher alone then.
    if (!keep_socket) close(SOCKET_FD);
    run_command(spec);
  }
  close_from(0);
  // A function can send it too, and stop no one but itself with it.
  struct sigaction action = {.sa_sigaction = pause_or_resume, .sa_flags = SA_RESTART | SA_SIGINFO};
  sigaction(SIGRTMIN, &action, NULL);
  for (;;) {
    int status;
    pid_t ended = wait(&status);
    if (ended == runtime) _exit(status_of(status));
    if (ended < 0 && errno != EINTR) _exit(EXIT_SETUP_FAILED);
  }
}
