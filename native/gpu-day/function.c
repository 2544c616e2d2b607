// The function of the measurement of injection (bench/src/gpu-day/stages/injection.ts), on the driver API:
//
//   {"hold":MIB}              allocates device memory, which stays; with "fill" all of it is written
//   {"plant":1}               leaves a secret in device memory, on the heap and in a global
//   {"look":1}                how often the secret is in device memory (newly allocated, unless it is planted, too) and in
//                             the process's own
//   {"crash":1}               and then dereferences a null pointer
//
// It answers {"error":CUresult,"onDevice":COUNT,"onHost":COUNT}.
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECRET_BYTES = 32, ROOM_BYTES = 64 << 20, NO_CALL = -1 };

static volatile char planted[SECRET_BYTES];

// No text of the program has these bytes in a row.
static unsigned char secret(size_t at) { return (unsigned char)(0xa5 ^ (at * 37 + 11)); }

static size_t count_secrets(const unsigned char *from, size_t bytes) {
  size_t found = 0;
  for (size_t i = 0; i + SECRET_BYTES <= bytes; i++) {
    size_t same = 0;
    while (same < SECRET_BYTES && from[i + same] == secret(same)) same++;
    found += same == SECRET_BYTES;
  }
  return found;
}

static size_t count_on_host(void) {
  size_t found = 0;
  char line[512];
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps && fgets(line, sizeof line, maps)) {
    unsigned long start, end;
    char flags[8];
    // Not shared memory, whose pages may be the device's.
    if (sscanf(line, "%lx-%lx %7s", &start, &end, flags) != 3 || flags[0] != 'r' || flags[3] == 's') continue;
    if (strstr(line, "[v") || strstr(line, "/dev/")) continue;
    found += count_secrets((const unsigned char *)start, end - start);
  }
  if (maps) fclose(maps);
  return found;
}

static struct {
  int (*allocate)(uint64_t *, size_t);
  int (*fill)(uint64_t, unsigned char, size_t);
  int (*write)(uint64_t, const void *, size_t);
  int (*read)(void *, uint64_t, size_t);
  int (*synchronize)(void);
} driver;

static int find_driver(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) return NO_CALL;
  *(void **)&driver.allocate = dlsym(library, "cuMemAlloc_v2");
  *(void **)&driver.fill = dlsym(library, "cuMemsetD8_v2");
  *(void **)&driver.write = dlsym(library, "cuMemcpyHtoD_v2");
  *(void **)&driver.read = dlsym(library, "cuMemcpyDtoH_v2");
  *(void **)&driver.synchronize = dlsym(library, "cuCtxSynchronize");
  return driver.allocate && driver.fill && driver.write && driver.read && driver.synchronize ? 0 : NO_CALL;
}

static int hold(size_t bytes, int fill) {
  uint64_t memory = 0;
  int error = driver.allocate(&memory, bytes);
  if (!error && fill) error = driver.fill(memory, 7, bytes);
  return error ? error : driver.synchronize();
}

static int plant(unsigned char *room, uint64_t *memory) {
  for (size_t i = 0; i < ROOM_BYTES; i++) room[i] = secret(i % SECRET_BYTES);
  for (size_t i = 0; i < SECRET_BYTES; i++) planted[i] = (char)secret(i);
  int error = driver.allocate(memory, ROOM_BYTES);
  return error ? error : driver.write(*memory, room, ROOM_BYTES);
}

/** In memory that was planted by the same call, or else in other. */
static int look(unsigned char *room, uint64_t memory, size_t *on_device) {
  int error = memory ? 0 : driver.allocate(&memory, ROOM_BYTES);
  if (!error) error = driver.read(room, memory, ROOM_BYTES);
  if (!error) *on_device = count_secrets(room, ROOM_BYTES);
  return error;
}

const char *gpuwhisk_main(const char *json) {
  static char text[128];
  size_t on_device = 0, on_host = 0;
  const char *held = strstr(json, "\"hold\":");
  int error = find_driver();
  if (!error && held) error = hold((size_t)strtoull(held + 7, NULL, 10) << 20, strstr(json, "\"fill\"") != NULL);
  if (!error && (strstr(json, "plant") || strstr(json, "look"))) {
    uint64_t memory = 0;
    unsigned char *room = calloc(1, ROOM_BYTES);
    if (!room) error = 2;
    if (!error && strstr(json, "plant")) error = plant(room, &memory);
    if (!error && strstr(json, "look")) error = look(room, memory, &on_device);
    if (!error && strstr(json, "look")) {
      memset(room, 0, ROOM_BYTES); // What it has read itself is counted already.
      on_host = count_on_host();
    }
  }
  if (strstr(json, "crash")) {
    static int *volatile nowhere;
    *nowhere = planted[0];
  }
  snprintf(text, sizeof text, "{\"error\":%d,\"onDevice\":%zu,\"onHost\":%zu}", error, on_device, on_host);
  return text;
}
