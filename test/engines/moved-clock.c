/* Preloaded into a server: the time of day is what stands in the file MOVED_CLOCK, microseconds since the epoch. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

static const volatile int64_t *now_us;

__attribute__((constructor)) static void open_clock(void) {
  const char *path = getenv("MOVED_CLOCK");
  if (path == NULL) abort();
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) abort();
  void *mapped = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) abort();
  close(file);
  now_us = mapped;
}

int gettimeofday(struct timeval *time, void *zone) {
  (void)zone;
  int64_t us = *now_us;
  time->tv_sec = us / 1000000;
  time->tv_usec = us % 1000000;
  return 0;
}
