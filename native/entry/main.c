// First process of a container of one of our images: connects a runtime with the platform by the socket that is mounted
// into the container, and is its init.
//
//   entry PROGRAM [ARGUMENT...]
//   entry --hold
//
// Connects three times to the socket that GPUWHISK_SOCKET names; in this order these become the runtime's standard
// output, its standard error and its channel (descriptor 3). If GPUWHISK_RUNS_FD is set it connects once more, for the socket
// for runs (descriptor 4). Complaints of its own go to the container's log.
//
// With --hold it keeps the PID namespace of an MSContainer, which the containers of its pairs join: it reaps what is
// orphaned in it, and all ends when it does. There the entries of the pairs are ordinary processes.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_STREAMS = 4, CHANNEL_FD = 3, RUNS_FD = 4, EXIT_SETUP_FAILED = 125, EXIT_NO_PROGRAM = 127 };

static const int places[MAX_STREAMS] = {STDOUT_FILENO, STDERR_FILENO, CHANNEL_FD, RUNS_FD};

_Noreturn static void fail(const char *what, int status) {
  fprintf(stderr, "entry: %s: %s\n", what, strerror(errno));
  exit(status);
}

static int connect_to(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    fail(path, EXIT_SETUP_FAILED);
  }
  strcpy(address.sun_path, path);
  int stream = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (stream < 0) fail("socket", EXIT_SETUP_FAILED);
  while (connect(stream, (struct sockaddr *)&address, sizeof address) < 0)
    if (errno != EINTR) fail(path, EXIT_SETUP_FAILED);
  // Above the places, whatever the container was given.
  int high = fcntl(stream, F_DUPFD_CLOEXEC, RUNS_FD + 1);
  if (high < 0) fail("descriptor", EXIT_SETUP_FAILED);
  close(stream);
  return high;
}

_Noreturn static void run_program(char **command, const int *streams, int count) {
  // The container's log, for the one complaint that is left.
  int log = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, RUNS_FD + 1);
  for (int i = 0; i < count; i++)
    if (dup2(streams[i], places[i]) < 0) fail("descriptor", EXIT_SETUP_FAILED);
  setsid();
  unsetenv("GPUWHISK_SOCKET");
  execvp(command[0], command);
  dprintf(log, "entry: %s: %s\n", command[0], strerror(errno));
  _exit(EXIT_NO_PROGRAM);
}

_Noreturn static void hold(void) {
  sigset_t awaited;
  sigemptyset(&awaited);
  sigaddset(&awaited, SIGCHLD);
  sigaddset(&awaited, SIGTERM);
  sigaddset(&awaited, SIGINT);
  sigprocmask(SIG_BLOCK, &awaited, NULL);
  for (;;) {
    int number = sigwaitinfo(&awaited, NULL);
    if (number == SIGTERM || number == SIGINT) exit(0);
    while (waitpid(-1, NULL, WNOHANG) > 0) continue;
  }
}

static pid_t runtime;

static void pass_on(int signal_number) { kill(runtime, signal_number); }

int main(int count, char **words) {
  if (count == 2 && strcmp(words[1], "--hold") == 0) hold();
  const char *path = getenv("GPUWHISK_SOCKET");
  if (count < 2 || path == NULL) {
    fputs("entry: this image is started by gpuwhisk, which mounts a socket and names it in GPUWHISK_SOCKET.\n", stderr);
    return EXIT_SETUP_FAILED;
  }
  int streams[MAX_STREAMS], connected = getenv("GPUWHISK_RUNS_FD") == NULL ? MAX_STREAMS - 1 : MAX_STREAMS;
  for (int i = 0; i < connected; i++) streams[i] = connect_to(path);
  // Its orphans are its own where it is not the namespace's first process.
  if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0) fail("prctl", EXIT_SETUP_FAILED);
  runtime = fork();
  if (runtime < 0) fail("fork", EXIT_SETUP_FAILED);
  if (runtime == 0) run_program(words + 1, streams, connected);
  for (int i = 0; i < connected; i++) close(streams[i]);
  struct sigaction action = {.sa_handler = pass_on, .sa_flags = SA_RESTART};
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGINT, &action, NULL);
  // It reaps what is orphaned; the engine ends what is left when it ends.
  for (;;) {
    int status;
    pid_t ended = wait(&status);
    if (ended == runtime) return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (ended < 0 && errno != EINTR) fail("wait", EXIT_SETUP_FAILED);
  }
}
