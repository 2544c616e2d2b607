// PID 1 of the sandbox: starts the runtime, reaps what is orphaned, ends with the runtime's status.
#define _GNU_SOURCE
#include "sandbox.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
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
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  setsid();
  close_from(SOCKET_FD + 1);
  execve(spec->command[0], spec->command, spec->environment);
  fail("exec", errno, spec->command[0]);
}

static int status_of(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

static void stop_all(int signal_number) {
  (void)signal_number;
  kill(-1, SIGSTOP);
}

static void continue_all(int signal_number) {
  (void)signal_number;
  kill(-1, SIGCONT);
}

void run_init(const struct spec *spec, int launcher) {
  const struct step *cwd = find_step(spec, OP_CWD);
  if (cwd != NULL && chdir(cwd->args[0]) < 0) fail("mount", errno, cwd->args[0]);
  // Changing the user cleared it.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0) fail("death-signal", errno, "prctl");
  struct pollfd gone = {.fd = launcher, .events = 0};
  if (poll(&gone, 1, 0) != 0) _exit(EXIT_SETUP_FAILED);
  bool keep_socket = find_step(spec, OP_KEEP_SOCKET) != NULL;
  if (!(spec->namespaces & CLONE_NEWPID)) {
    if (!keep_socket) close(SOCKET_FD);
    run_command(spec);
  }

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
  // Where there is no freezer: pause and resume. A function can only stop itself with these.
  struct sigaction pause = {.sa_handler = stop_all, .sa_flags = SA_RESTART};
  struct sigaction resume = {.sa_handler = continue_all, .sa_flags = SA_RESTART};
  sigaction(SIGUSR1, &pause, NULL);
  sigaction(SIGUSR2, &resume, NULL);
  for (;;) {
    int status;
    pid_t ended = wait(&status);
    if (ended == runtime) _exit(status_of(status));
    if (ended < 0 && errno != EINTR) _exit(EXIT_SETUP_FAILED);
  }
}
