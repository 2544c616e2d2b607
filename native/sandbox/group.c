// The end of all processes of a sandbox's control group, for one whose first process is not its PID namespace's.
#define _GNU_SOURCE
#include "sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_ROUNDS = 2000, LIST_BYTES = 64 * 1024 };

// Kills what is listed; whether there was anything besides this process. A list cut short is read again next time.
static bool kill_listed(const char *group) {
  static char list[LIST_BYTES];
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/cgroup.procs", group);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false; // The platform has removed it: it was empty then.
  ssize_t got = read(file, list, sizeof list - 1);
  close(file);
  if (got <= 0) return false;
  list[got] = '\0';
  char *complete = strrchr(list, '\n');
  if (complete == NULL) return false;
  *complete = '\0';
  bool found = false;
  for (char *word = strtok(list, "\n"); word != NULL; word = strtok(NULL, "\n")) {
    pid_t pid = (pid_t)atol(word);
    // 0: of a PID namespace that this process does not see.
    if (pid <= 0 || pid == getpid()) continue;
    found = true;
    kill(pid, SIGKILL);
  }
  return found;
}

void end_group(const struct spec *spec) {
  char path[PATH_MAX];
  const char *group = NULL;
  for (int i = 0; i < spec->count; i++) {
    const struct step *step = &spec->steps[i];
    if (step->op != OP_JOIN && step->op != OP_JOIN_DIR) continue;
    group = step->args[0];
    // Nothing more is forked from here on. Absent where the group is of another controller.
    snprintf(path, sizeof path, "%s/pids.max", group);
    (void)!write_file(path, "0");
    snprintf(path, sizeof path, "%s/cgroup.freeze", group);
    (void)!write_file(path, "0");
    // Version 2, since Linux 5.14.
    snprintf(path, sizeof path, "%s/cgroup.kill", group);
    (void)!write_file(path, "1");
  }
  if (group == NULL) return;
  for (int round = 0; round < MAX_ROUNDS && kill_listed(group); round++)
    nanosleep(&(struct timespec){0, 1000000}, NULL);
}
