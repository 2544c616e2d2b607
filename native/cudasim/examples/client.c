// A program on the driver API that does what it is told, a line at a time, and answers each with a line that begins with the
// last CUresult:
//
//   context                       makes a context on the first device; then its SMs
//   alloc BYTES / free INDEX      an allocation, by its number / gives it back
//   info                          free and total bytes
//   run COUNT BLOCKS NS DRAM      launches COUNT kernels of blocks that take NS ns, back to back; then the ms that it
//                                 took by the device's time, and by this process's
//   launches COUNT                launches of one empty block each; then the median ns that one took of the caller
//   vecadd N / saxpy N / matmul N / bad N   with true results, which are checked: "right" or "wrong"; bad: a wrong address
//   graph COUNT                   captures COUNT vecadds, launches the graph twice; "right" or "wrong"
//   fork                          what cuCtxSynchronize answers in a child
//   plant BYTES / look BYTES      writes to memory and frees it / whether new memory is "clean" or "dirty"
//   proc NAME VERSION FLAGS       cuGetProcAddress; then its status, and which export that is, as "cuMemAlloc_v2"
//   mark / reset                  gpuwhisk_sim_mark and gpuwhisk_sim_reset
//   sync / destroy
// and what memory.h lists.
#define _GNU_SOURCE
#include "kernels.h"
#include "memory.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_ALLOCATIONS = 1024 };

static CUcontext context;
static CUdeviceptr allocations[MAX_ALLOCATIONS];
static int allocation_count;

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void make_context(void) {
  CUdevice device;
  int sms = 0;
  CUresult result = cuInit(0);
  if (result == CUDA_SUCCESS) result = cuDeviceGet(&device, 0);
  if (result == CUDA_SUCCESS) result = cuCtxCreate(&context, NULL, 0, device);
  if (result == CUDA_SUCCESS) cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
  printf("%d %d\n", result, sms);
}

static void run(int count, unsigned blocks, double ns, double dram) {
  char ptx[768];
  snprintf(ptx, sizeof ptx,
           ".version 7.0\n// gpuwhisk threads=256 blocksPerSm=8 nsPerBlock=%f dramBytesPerBlock=%f\n"
           ".visible .entry work() { ret; }\n"
           "// gpuwhisk threads=256 blocksPerSm=8 nsPerBlock=20000000\n"
           ".visible .entry lead() { ret; }\n",
           ns, dram);
  CUmodule own;
  CUfunction work, lead;
  CUevent start, end;
  float ms = 0;
  double begin, host_ms;
  CUresult result = cuModuleLoadData(&own, ptx);
  if (result == CUDA_SUCCESS) result = cuModuleGetFunction(&work, own, "work");
  if (result == CUDA_SUCCESS) result = cuModuleGetFunction(&lead, own, "lead");
  if (result == CUDA_SUCCESS) result = launch(work, 1, NULL, NULL); // Lazy loading is over with.
  if (result == CUDA_SUCCESS) result = cuCtxSynchronize();
  // While it runs, on one SM, the others are queued: how fast this process is does not matter to them.
  if (result == CUDA_SUCCESS) result = launch(lead, 1, NULL, NULL);
  cuEventCreate(&start, 0);
  cuEventCreate(&end, 0);
  if (result == CUDA_SUCCESS) result = cuEventRecord(start, NULL);
  for (int i = 0; i < count && result == CUDA_SUCCESS; i++) result = launch(work, blocks, NULL, NULL);
  if (result == CUDA_SUCCESS) result = cuEventRecord(end, NULL);
  if (result == CUDA_SUCCESS) result = cuEventSynchronize(start);
  begin = now_ns();
  if (result == CUDA_SUCCESS) result = cuEventSynchronize(end);
  host_ms = (now_ns() - begin) / 1e6;
  if (result == CUDA_SUCCESS) result = cuEventElapsedTime(&ms, start, end);
  cuEventDestroy(start);
  cuEventDestroy(end);
  cuModuleUnload(own);
  printf("%d %.6f %.6f\n", result, ms, host_ms);
}

static int by_value(const void *one, const void *other) {
  double a = *(const double *)one, b = *(const double *)other;
  return a < b ? -1 : a > b;
}

static void count_launches(int count) {
  unsigned ns = 0;
  void *arguments[] = {&ns};
  CUfunction spin = function_of("spin");
  CUresult result = launch(spin, 1, arguments, NULL);
  double *each = calloc((size_t)count + 1, sizeof *each);
  for (int i = 0; i < count && result == CUDA_SUCCESS; i++) {
    double begin = now_ns();
    result = launch(spin, 1, arguments, NULL);
    each[i] = now_ns() - begin;
  }
  qsort(each, (size_t)count, sizeof *each, by_value);
  if (result == CUDA_SUCCESS) result = cuCtxSynchronize();
  printf("%d %.1f\n", result, each[count / 2]);
  free(each);
}

static void ask_child(void) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) _exit((int)cuCtxSynchronize());
  int status = -1;
  waitpid(child, &status, 0);
  printf("%d\n", WEXITSTATUS(status));
}

static void allocate(size_t bytes) {
  CUresult result = cuMemAlloc(&allocations[allocation_count % MAX_ALLOCATIONS], bytes);
  if (result == CUDA_SUCCESS) allocation_count++;
  printf("%d %d\n", result, allocation_count - 1);
}

static void tell_memory(void) {
  size_t available = 0, total = 0;
  CUresult result = cuMemGetInfo(&available, &total);
  printf("%d %zu %zu\n", result, available, total);
}

static void plant(size_t bytes) {
  CUdeviceptr memory;
  CUresult result = cuMemAlloc(&memory, bytes);
  if (result == CUDA_SUCCESS) result = cuMemsetD8(memory, 0x5a, bytes);
  if (result == CUDA_SUCCESS) result = cuMemFree(memory);
  printf("%d\n", result);
}

static void look(size_t bytes) {
  CUdeviceptr memory;
  char *copy = calloc(1, bytes);
  bool dirty = false;
  CUresult result = cuMemAlloc(&memory, bytes);
  if (result == CUDA_SUCCESS) result = cuMemcpyDtoH(copy, memory, bytes);
  for (size_t at = 0; at < bytes; at++) dirty = dirty || copy[at] != 0;
  if (result == CUDA_SUCCESS) result = cuMemFree(memory);
  free(copy);
  printf("%d %s\n", result, dirty ? "dirty" : "clean");
}

static void mark(void) {
  void (*function)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "gpuwhisk_sim_mark");
  if (function != NULL) function();
  printf("%d\n", function == NULL ? 500 : 0);
}

static void reset(void) {
  int (*function)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "gpuwhisk_sim_reset");
  printf("%d\n", function == NULL ? 500 : function());
}

// What the address is called in the library's table of exports.
static void find_entry(const char *name, int version, unsigned flags) {
  void *found = NULL;
  Dl_info info = {0};
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
  CUresult result = cuGetProcAddress(name, &found, version, flags, &status);
  if (found != NULL) dladdr(found, &info);
  printf("%d %d %s\n", result, status, info.dli_sname == NULL ? "-" : info.dli_sname);
}

static void obey(const char *line) {
  char word[32] = "", name[64] = "";
  double numbers[5] = {0};
  sscanf(line, "%31s %lf %lf %lf %lf %lf", word, &numbers[0], &numbers[1], &numbers[2], &numbers[3], &numbers[4]);
  int first = (int)numbers[0];
  if (sscanf(line, "proc %63s %lf %lf", name, &numbers[0], &numbers[1]) == 3) {
    find_entry(name, (int)numbers[0], (unsigned)numbers[1]);
    return;
  }
  if (strcmp(word, "context") == 0) make_context();
  else if (strcmp(word, "alloc") == 0) allocate((size_t)numbers[0]);
  else if (strcmp(word, "free") == 0) printf("%d\n", cuMemFree(allocations[first % MAX_ALLOCATIONS]));
  else if (strcmp(word, "info") == 0) tell_memory();
  else if (strcmp(word, "run") == 0) run(first, (unsigned)numbers[1], numbers[2], numbers[3]);
  else if (strcmp(word, "launches") == 0) count_launches(first);
  else if (strcmp(word, "vecadd") == 0) vecadd((unsigned)first, false);
  else if (strcmp(word, "bad") == 0) vecadd((unsigned)first, true);
  else if (strcmp(word, "saxpy") == 0) saxpy((unsigned)first);
  else if (strcmp(word, "matmul") == 0) matmul((unsigned)first);
  else if (strcmp(word, "graph") == 0) graph(first);
  else if (strcmp(word, "plant") == 0) plant((size_t)numbers[0]);
  else if (strcmp(word, "look") == 0) look((size_t)numbers[0]);
  else if (strcmp(word, "mark") == 0) mark();
  else if (strcmp(word, "reset") == 0) reset();
  else if (strcmp(word, "fork") == 0) ask_child();
  else if (strcmp(word, "sync") == 0) printf("%d\n", cuCtxSynchronize());
  else if (strcmp(word, "destroy") == 0) printf("%d\n", cuCtxDestroy(context));
  else if (!obey_memory(line)) printf("-1 what?\n");
}

int main(void) {
  char line[256];
  setvbuf(stdout, NULL, _IOLBF, 0);
  while (fgets(line, sizeof line, stdin) != NULL) obey(line);
  return 0;
}
