// One process of the benchmark of a GPU. It says `ready`, its device, SMs and MiB, then does what it is told, a line at a
// time; an answer begins with `ok`, or is `error` and why.
//
//   load matmul:SIZE | stream:MIB   readies a workload in place of the last
//   unload                          frees its memory
//   run SECONDS                     repeats it, waiting for each iteration; then how many there were, and their median,
//                                   95th percentile, mean and 99th percentile, ms
//   check                           whether a small product is right
//
// Only the driver's library is needed, which is opened at run time.
#define _GNU_SOURCE
#include "kernels.h"

#include <cuda.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_ITERATIONS = 1 << 20, CHECK_SIZE = 64 };

static struct {
  __typeof__(&cuInit) init;
  __typeof__(&cuGetErrorName) error_name;
  __typeof__(&cuDeviceGetName) device_name;
  __typeof__(&cuDeviceGetAttribute) attribute;
  __typeof__(&cuDeviceTotalMem) total_memory;
  __typeof__(&cuDevicePrimaryCtxRetain) retain;
  __typeof__(&cuCtxSetCurrent) set_current;
  __typeof__(&cuCtxSynchronize) synchronize;
  __typeof__(&cuModuleLoadData) load;
  __typeof__(&cuModuleGetFunction) function;
  __typeof__(&cuMemAlloc) allocate;
  __typeof__(&cuMemFree) free;
  __typeof__(&cuMemsetD32) fill;
  __typeof__(&cuMemcpyHtoD) to_device;
  __typeof__(&cuMemcpyDtoH) to_host;
  __typeof__(&cuLaunchKernel) launch;
} driver;

static CUfunction matmul, checked_matmul, stream;

/** What `run` repeats: so many launches of one kernel. */
static struct {
  CUfunction function;
  unsigned grid[2], block[2], size;
  int launches, vectors;
  CUdeviceptr memory[3];
} work;

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static bool report(CUresult result, const char *what) {
  if (result == CUDA_SUCCESS) return true;
  const char *name = NULL;
  if (driver.error_name != NULL) driver.error_name(result, &name);
  printf("error %s: %s (%d)\n", what, name == NULL ? "unknown" : name, result);
  return false;
}

static bool open_driver(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  const struct {
    void *into;
    const char *name;
  } entries[] = {
      {&driver.init, "cuInit"},
      {&driver.error_name, "cuGetErrorName"},
      {&driver.device_name, "cuDeviceGetName"},
      {&driver.attribute, "cuDeviceGetAttribute"},
      {&driver.total_memory, "cuDeviceTotalMem_v2"},
      {&driver.retain, "cuDevicePrimaryCtxRetain"},
      {&driver.set_current, "cuCtxSetCurrent"},
      {&driver.synchronize, "cuCtxSynchronize"},
      {&driver.load, "cuModuleLoadData"},
      {&driver.function, "cuModuleGetFunction"},
      {&driver.allocate, "cuMemAlloc_v2"},
      {&driver.free, "cuMemFree_v2"},
      {&driver.fill, "cuMemsetD32_v2"},
      {&driver.to_device, "cuMemcpyHtoD_v2"},
      {&driver.to_host, "cuMemcpyDtoH_v2"},
      {&driver.launch, "cuLaunchKernel"},
  };
  for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
    void *found = library == NULL ? NULL : dlsym(library, entries[i].name);
    if (found == NULL) {
      printf("error there is no %s\n", library == NULL ? "libcuda.so.1" : entries[i].name);
      return false;
    }
    memcpy(entries[i].into, &found, sizeof found);
  }
  return true;
}

static bool open_device(void) {
  CUcontext context;
  CUmodule module;
  char name[128] = "";
  int sms = 0;
  size_t bytes = 0;
  CUresult result = driver.init(0);
  if (result == CUDA_SUCCESS) result = driver.retain(&context, 0);
  if (result == CUDA_SUCCESS) result = driver.set_current(context);
  if (result == CUDA_SUCCESS) result = driver.load(&module, kernels);
  if (result == CUDA_SUCCESS) result = driver.function(&matmul, module, "matmul");
  if (result == CUDA_SUCCESS) result = driver.function(&checked_matmul, module, "checked_matmul");
  if (result == CUDA_SUCCESS) result = driver.function(&stream, module, "stream");
  if (result == CUDA_SUCCESS) result = driver.device_name(name, sizeof name, 0);
  // Of an MPS client: those of its percentage.
  if (result == CUDA_SUCCESS) result = driver.attribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0);
  if (result == CUDA_SUCCESS) result = driver.total_memory(&bytes, 0);
  if (!report(result, "opening the device")) return false;
  printf("ready %d %zu %s\n", sms, bytes >> 20, name);
  return true;
}

static void unload(void) {
  for (int i = 0; i < work.vectors; i++) driver.free(work.memory[i]);
  memset(&work, 0, sizeof work);
}

static CUresult reserve(int vectors, size_t bytes) {
  CUresult result = CUDA_SUCCESS;
  for (; work.vectors < vectors && result == CUDA_SUCCESS; work.vectors++) {
    result = driver.allocate(&work.memory[work.vectors], bytes);
    if (result != CUDA_SUCCESS) break;
    result = driver.fill(work.memory[work.vectors], 0x3f000000, bytes / 4); // 0.5f
  }
  return result;
}

// Iterations of some milliseconds on a data centre's GPU, whatever the size.
static int repetitions(double least, double each) { return each >= least ? 1 : (int)(least / each); }

static CUresult load_matmul(unsigned size, CUfunction function) {
  work.function = function;
  work.size = size;
  work.grid[0] = work.grid[1] = size / 16;
  work.block[0] = work.block[1] = 16;
  work.launches = repetitions(2e9, (double)size * size * size);
  return reserve(3, (size_t)size * size * 4);
}

static CUresult load_stream(unsigned mib) {
  work.function = stream;
  work.size = mib << 18; // Floats.
  work.grid[0] = work.size / 256;
  work.grid[1] = work.block[1] = 1;
  work.block[0] = 256;
  work.launches = repetitions(1024, mib);
  return reserve(2, (size_t)mib << 20);
}

static CUresult launch_once(void) {
  void *product[] = {&work.memory[0], &work.memory[1], &work.memory[2], &work.size};
  void *sum[] = {&work.memory[0], &work.memory[1], &work.size};
  return driver.launch(work.function, work.grid[0], work.grid[1], 1, work.block[0], work.block[1], 1, 0, NULL,
                       work.vectors == 3 ? product : sum, NULL);
}

static CUresult iterate(void) {
  CUresult result = CUDA_SUCCESS;
  for (int i = 0; i < work.launches && result == CUDA_SUCCESS; i++) result = launch_once();
  return result == CUDA_SUCCESS ? driver.synchronize() : result;
}

static void load(const char *name) {
  unsigned size = 0;
  unload();
  CUresult result = CUDA_ERROR_INVALID_VALUE;
  if (sscanf(name, "matmul:%u", &size) == 1 && size > 0 && size % 16 == 0 && size <= 16384) result = load_matmul(size, matmul);
  else if (sscanf(name, "stream:%u", &size) == 1 && size > 0 && size <= 4096) result = load_stream(size);
  if (result == CUDA_SUCCESS) result = iterate(); // Lazy loading is over with.
  if (report(result, name)) printf("ok\n");
  else unload();
}

static int by_value(const void *one, const void *other) {
  double a = *(const double *)one, b = *(const double *)other;
  return a < b ? -1 : a > b;
}

static void run(double seconds) {
  static double each[MAX_ITERATIONS];
  int count = 0;
  double begin = now_ms(), end = begin + seconds * 1e3, at = begin;
  CUresult result = work.function == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
  while (result == CUDA_SUCCESS && count < MAX_ITERATIONS && (at < end || count == 0)) {
    result = iterate();
    double now = now_ms();
    each[count++] = now - at;
    at = now;
  }
  if (!report(result, "running")) return;
  qsort(each, (size_t)count, sizeof *each, by_value);
  double p95 = each[(95 * count + 99) / 100 - 1], p99 = each[(99 * count + 99) / 100 - 1];
  printf("ok %d %.6f %.6f %.6f %.6f\n", count, each[count / 2], p95, (at - begin) / count, p99);
}

static void check(void) {
  static float a[CHECK_SIZE * CHECK_SIZE], b[CHECK_SIZE * CHECK_SIZE], c[CHECK_SIZE * CHECK_SIZE];
  for (int i = 0; i < CHECK_SIZE * CHECK_SIZE; i++) a[i] = (float)(i % 7), b[i] = (float)(i % 5);
  unload();
  CUresult result = load_matmul(CHECK_SIZE, checked_matmul);
  if (result == CUDA_SUCCESS) result = driver.to_device(work.memory[0], a, sizeof a);
  if (result == CUDA_SUCCESS) result = driver.to_device(work.memory[1], b, sizeof b);
  if (result == CUDA_SUCCESS) result = launch_once();
  if (result == CUDA_SUCCESS) result = driver.synchronize();
  if (result == CUDA_SUCCESS) result = driver.to_host(c, work.memory[2], sizeof c);
  bool right = true; // Whole numbers: exact in any order.
  for (int row = 0; row < CHECK_SIZE; row++)
    for (int column = 0; column < CHECK_SIZE; column++) {
      float sum = 0;
      for (int k = 0; k < CHECK_SIZE; k++) sum += a[row * CHECK_SIZE + k] * b[k * CHECK_SIZE + column];
      right = right && c[row * CHECK_SIZE + column] == sum;
    }
  unload();
  if (report(result, "check")) printf(right ? "ok\n" : "error a product is wrong\n");
}

int main(void) {
  char line[128], word[16], name[64];
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (!open_driver() || !open_device()) return 1;
  while (fgets(line, sizeof line, stdin) != NULL) {
    double seconds = 0;
    if (sscanf(line, "load %63s", name) == 1) load(name);
    else if (sscanf(line, "run %lf", &seconds) == 1 && seconds > 0 && seconds <= 3600) run(seconds);
    else if (sscanf(line, "%15s", word) != 1) printf("error what?\n");
    else if (strcmp(word, "check") == 0) check();
    else if (strcmp(word, "unload") == 0) unload(), printf("ok\n");
    else printf("error what?\n");
  }
  return 0;
}
