// checkpoint PID: locks, checkpoints, restores and unlocks a CUDA process, and prints how long each took, in ms.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int command(int pid, void *settings);

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

int main(int count, char **words) {
  static const char *const names[] = {"Lock", "Checkpoint", "Restore", "Unlock"};
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  int (*init)(unsigned) = NULL;
  if (library) *(void **)&init = dlsym(library, "cuInit");
  int error = init ? init(0) : -1;
  if (count != 2 || error) {
    fprintf(stderr, "usage: checkpoint PID, with a CUDA driver (cuInit: error %d)\n", error);
    return 2;
  }
  int pid = atoi(words[1]);
  for (int i = 0; i < 4; i++) {
    char name[64];
    unsigned settings[16] = {i == 0 ? 10000 : 0}; // Of the lock: its time limit, ms.
    command *call = NULL;
    snprintf(name, sizeof name, "cuCheckpointProcess%s", names[i]);
    *(void **)&call = dlsym(library, name);
    double began_ms = now_ms();
    error = call ? call(pid, settings) : -1;
    if (error) {
      fprintf(stderr, "%s: error %d\n", name, error);
      return 1;
    }
    printf("%.3f%c", now_ms() - began_ms, i == 3 ? '\n' : ' ');
  }
  return 0;
}
