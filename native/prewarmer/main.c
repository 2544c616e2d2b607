// The native pre-warmer: a process in which shared objects are loaded and called.
//
//   prewarmer [--library NAME]... [--read PATH]... [--write PATH]...
//
// loads the libraries, and parks a worker thread at the safe point. Its main thread only waits.
#define _GNU_SOURCE
#include "../../runtimes/native/guest.h"
#include "park.h"
#include "prewarmer.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_PATHS = 64, STACK_BYTES = 8 << 20 };

struct options {
  const char *libraries[MAX_PATHS + 1], *readable[MAX_PATHS + 1], *writable[MAX_PATHS + 1];
};

struct worker {
  struct gw_channel *channel;
  pid_t thread;
  int cuda;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int go;
};

static void add(const char **list, const char *value) {
  size_t count = 0;
  while (list[count]) count++;
  if (!value || count == MAX_PATHS) gw_fail("arguments", EINVAL);
  list[count] = value;
}

static void parse(struct options *options, char **arguments) {
  // Of /proc its own part: Landlock does not keep it from reading the environment of others.
  const char *system[] = {"/usr", "/lib",       "/lib32",        "/lib64",        "/bin",         "/etc",
                          "/opt", "/sys",       "/proc/self",    "/proc/cpuinfo", "/proc/meminfo", "/proc/driver",
                          "/dev/urandom", "/dev/random"};
  const char *devices[] = {"/dev/null", "/dev/zero", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0"};
  for (size_t i = 0; i < sizeof system / sizeof *system; i++) add(options->readable, system[i]);
  for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) add(options->writable, devices[i]);
  for (; *arguments; arguments += 2) {
    if (strcmp(*arguments, "--library") == 0) add(options->libraries, arguments[1]);
    else if (strcmp(*arguments, "--read") == 0) add(options->readable, arguments[1]);
    else if (strcmp(*arguments, "--write") == 0) add(options->writable, arguments[1]);
    else gw_fail(*arguments, EINVAL);
  }
}

static void *run_worker(void *argument) {
  struct worker *worker = argument;
  worker->cuda = gw_make_cuda_context();
  pthread_mutex_lock(&worker->lock);
  worker->thread = (pid_t)syscall(SYS_gettid);
  pthread_cond_signal(&worker->changed);
  while (!worker->go) pthread_cond_wait(&worker->changed, &worker->lock);
  pthread_mutex_unlock(&worker->lock);
  struct gw_channel *channel = worker->channel;
  gw_raise_ready(channel);
  gw_park(channel->state);
}

int main(int count, char **arguments) {
  (void)count;
  static struct options options;
  static struct gw_channel channel;
  static struct worker worker = {
      .channel = &channel, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
  parse(&options, arguments + 1);
  gw_open_channel(&channel);
  int landlock = gw_enter_landlock(options.readable, options.writable);
  for (const char **library = options.libraries; *library; library++) {
    if (dlopen(*library, RTLD_NOW | RTLD_GLOBAL)) continue;
    dprintf(2, "The pre-warmer cannot load %s: %s\n", *library, dlerror());
    return GW_EXIT_SETUP;
  }
  gw_prepare_guest(channel.mailbox);

  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, STACK_BYTES);
  int error = pthread_create(&thread, &attributes, run_worker, &worker);
  if (error) gw_fail("worker thread", error);
  pthread_mutex_lock(&worker.lock);
  while (!worker.thread) pthread_cond_wait(&worker.changed, &worker.lock);
  if (worker.cuda == GW_CUDA_KEPT && gw_can_free_device()) worker.cuda = GW_CUDA_OWNER; // The guest can unload.
  struct gw_hello hello = {.worker = worker.thread, .landlock = landlock, .cuda = worker.cuda, .guest = (uintptr_t)gw_guest};
  if (fcntl(GW_RUNS_FD, F_GETFD) >= 0) hello.read_return = (uintptr_t)gw_read_return;
  gw_say_hello(&hello, &channel); // Before the filter, which denies userfaultfd.
  gw_install_filter(0);
  worker.go = 1;
  pthread_cond_signal(&worker.changed);
  pthread_mutex_unlock(&worker.lock);
  for (;;) pause();
}
