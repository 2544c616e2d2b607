// The launcher's life beside the sandbox: ends it on request, on the platform's death and on memory exhaustion.
#define _GNU_SOURCE
#include "sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WATCH_EVERY_MS = 100 };

static void sleep_ms(long ms) { nanosleep(&(struct timespec){0, ms * 1000000}, NULL); }

// What the first process leaves is ended once it has.
static void kill_sandbox(const struct spec *spec, pid_t child) {
  if (!has_init(spec)) kill(-child, SIGKILL);
  kill(child, SIGKILL);
}

// A descriptor that becomes readable when the cgroup (v1) runs out of memory; -1 without one.
static int memory_event(const struct spec *spec) {
  const struct step *step = find_step(spec, OP_OOM_EVENT);
  if (step == NULL) return -1;
  char path[4096], text[64];
  snprintf(path, sizeof path, "%s/memory.oom_control", step->args[0]);
  int control = open(path, O_RDONLY | O_CLOEXEC);
  int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (control < 0 || event < 0) return -1;
  snprintf(text, sizeof text, "%d %d", event, control);
  snprintf(path, sizeof path, "%s/cgroup.event_control", step->args[0]);
  if (write_file(path, text) < 0) return -1;
  return event;
}

// Remembers the sandbox's file systems in memory, which exist by now; its processes cannot replace them.
void watch_tmpfs(const struct spec *spec, pid_t child, struct watched *watched) {
  for (int i = 0; (spec->namespaces & CLONE_NEWNS) && i < spec->count; i++) {
    const struct step *step = &spec->steps[i];
    if (step->op != OP_TMPFS) continue;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "/proc/%d/root%s", child, step->args[0]);
    if (watched->tmpfs_count == sizeof watched->tmpfs / sizeof *watched->tmpfs) fail("spec", 0, "too many tmpfs");
    int folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) fail("watch", errno, path);
    watched->tmpfs[watched->tmpfs_count++] = folder;
  }
}

static long tmpfs_bytes(const struct watched *watched) {
  long bytes = 0;
  for (int i = 0; i < watched->tmpfs_count; i++) {
    struct statfs info;
    if (fstatfs(watched->tmpfs[i], &info) == 0) bytes += (long)(info.f_blocks - info.f_bfree) * info.f_bsize;
  }
  return bytes;
}

// Private resident memory of all the sandbox's processes, bytes.
static long resident_bytes(int proc_folder) {
  long pages = 0;
  int copy = openat(proc_folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *folder = copy < 0 ? NULL : fdopendir(copy);
  if (folder == NULL) return 0;
  for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
    if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
    char path[300], text[128];
    snprintf(path, sizeof path, "%s/statm", entry->d_name);
    int file = openat(proc_folder, path, O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    ssize_t got = read(file, text, sizeof text - 1);
    close(file);
    if (got <= 0) continue;
    text[got] = '\0';
    long size, resident, shared;
    if (sscanf(text, "%ld %ld %ld", &size, &resident, &shared) == 3) pages += resident - shared;
  }
  closedir(folder);
  return pages * sysconf(_SC_PAGESIZE);
}

static bool killed_for_memory(const struct spec *spec) {
  const struct step *step = find_step(spec, OP_OOM_COUNT);
  if (step == NULL) return false;
  int file = open(step->args[0], O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char text[512];
  ssize_t got = read(file, text, sizeof text - 1);
  close(file);
  if (got <= 0) return false;
  text[got] = '\0';
  const char *line = strstr(text, "oom_kill ");
  return line != NULL && strtol(line + strlen("oom_kill "), NULL, 10) > 0;
}

// Without a PID namespace orphans come to the launcher (it is their subreaper): ends them all.
static void end_orphans(void) {
  char path[64], list[4096];
  snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
  for (;;) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = file < 0 ? 0 : read(file, list, sizeof list - 1);
    if (file >= 0) close(file);
    if (got <= 0) return;
    list[got] = '\0';
    for (char *word = strtok(list, " "); word != NULL; word = strtok(NULL, " ")) kill((pid_t)atol(word), SIGKILL);
    while (waitpid(-1, NULL, WNOHANG) > 0) continue;
    sleep_ms(1);
  }
}

static bool ended(pid_t child, int *status) {
  for (;;) {
    pid_t pid = waitpid(-1, status, WNOHANG);
    if (pid == child) return true;
    if (pid <= 0) return false;
  }
}

static void handle_signals(const struct spec *spec, int signals, pid_t child) {
  struct signalfd_siginfo info;
  while (read(signals, &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGTERM) kill_sandbox(spec, child);
  }
}

// Returns whether there may be more to come.
static bool handle_command(const struct spec *spec, pid_t child) {
  char command;
  ssize_t got = read(CONTROL_FD, &command, 1);
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  if (got == 0) {
    kill_sandbox(spec, child);
    return false;
  }
  if (has_init(spec)) sigqueue(child, SIGRTMIN, (union sigval){.sival_int = command});
  else kill(-child, command == COMMAND_PAUSE ? SIGSTOP : SIGCONT);
  return true;
}

int supervise(const struct spec *spec, pid_t child, const struct watched *watched) {
  sigset_t handled;
  sigemptyset(&handled);
  sigaddset(&handled, SIGTERM);
  sigaddset(&handled, SIGCHLD);
  int signals = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
  int event = memory_event(spec);
  const struct step *watch = find_step(spec, OP_WATCH);
  long limit = watch == NULL ? 0 : number(watch->args[0]);

  bool exhausted = false;
  int status = 0, control = CONTROL_FD;
  while (!ended(child, &status)) {
    struct pollfd waits[3] = {
        {.fd = signals, .events = POLLIN},
        {.fd = event, .events = POLLIN},
        {.fd = control, .events = POLLIN},
    };
    if (poll(waits, 3, limit > 0 ? WATCH_EVERY_MS : -1) < 0 && errno != EINTR) break;
    handle_signals(spec, signals, child);
    if (waits[2].revents != 0 && !handle_command(spec, child)) control = -1;
    if (waits[1].revents & POLLIN) {
      // One process of the sandbox is killed by the kernel; half a sandbox is of no use.
      uint64_t times;
      (void)!read(event, &times, sizeof times);
      exhausted = true;
      kill_sandbox(spec, child);
    }
    long used = limit == 0 ? 0 : resident_bytes(watched->proc_folder) + tmpfs_bytes(watched);
    if (limit > 0 && watched->diagnosis >= 0) used += socket_bytes(watched->diagnosis);
    if (limit > 0 && used > limit) {
      exhausted = true;
      kill_sandbox(spec, child);
    }
  }
  if (joins_others(spec)) end_group(spec);
  else if (!has_init(spec)) end_orphans();
  if (!exhausted) exhausted = killed_for_memory(spec);
  if (exhausted) {
    // How the platform learns of it: no status of the runtime looks like this.
    sigset_t all;
    sigfillset(&all);
    signal(SIGUSR2, SIG_DFL);
    sigdelset(&all, SIGUSR2);
    raise(SIGUSR2);
    sigprocmask(SIG_SETMASK, &all, NULL);
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
