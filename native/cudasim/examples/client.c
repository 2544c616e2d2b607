// A program on the driver API that does what it is told, a line at a time, and answers each with a line that begins with the
// last CUresult:
//
//   context                       makes a context on the first device; then its SMs
//   alloc BYTES / free INDEX      an allocation, by its number / gives it back
//   info                          free and total bytes
//   run COUNT BLOCKS NS DRAM L2   launches COUNT kernels of blocks that take NS ns, back to back; then the ms that it
//                                 took by the device's time, and by this process's
//   launches COUNT                launches of one empty block each; then the median ns that one took of the caller
//   vecadd N / saxpy N / matmul N / bad N   with true results, which are checked: "right" or "wrong"; bad: a wrong address
//   graph COUNT                   captures COUNT vecadds, launches the graph twice; "right" or "wrong"
//   fork                          what cuCtxSynchronize answers in a child
//   plant BYTES / look BYTES      writes to memory and frees it / whether memory anew is "clean" or "dirty"
//   proc NAME VERSION FLAGS       cuGetProcAddress; then its status, and which export that is, as "cuMemAlloc_v2"
//   mark / reset                  gpuwhisk_sim_mark and gpuwhisk_sim_reset
//   sync / destroy
#define _GNU_SOURCE
#include "../../../runtimes/cuda/gpuwhisk_sim.h"
#include <cuda.h>

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_ALLOCATIONS = 1024, THREADS = 256 };

static CUcontext context;
static CUmodule module;
static CUdeviceptr allocations[MAX_ALLOCATIONS];
static int allocation_count;

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static CUfunction function_of(const char *name) {
  CUfunction function = NULL;
  if (module == NULL && cuModuleLoadData(&module, gpuwhisk_kernels) != CUDA_SUCCESS) return NULL;
  return cuModuleGetFunction(&function, module, name) == CUDA_SUCCESS ? function : NULL;
}

static CUresult launch(CUfunction function, unsigned blocks, void **arguments, CUstream stream) {
  return cuLaunchKernel(function, blocks, 1, 1, THREADS, 1, 1, 0, stream, arguments, NULL);
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

static void run(int count, unsigned blocks, double ns, double dram, double l2) {
  char ptx[768];
  snprintf(ptx, sizeof ptx,
           ".version 7.0\n// gpuwhisk threads=256 blocksPerSm=8 nsPerBlock=%f dramBytesPerBlock=%f l2Bytes=%f\n"
           ".visible .entry work() { ret; }\n"
           "// gpuwhisk threads=256 blocksPerSm=8 nsPerBlock=20000000\n"
           ".visible .entry lead() { ret; }\n",
           ns, dram, l2);
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

struct vectors {
  unsigned n;
  float *host[3];
  CUdeviceptr device[3];
};

static CUresult make_vectors(struct vectors *vectors, unsigned n, size_t each) {
  CUresult result = CUDA_SUCCESS;
  vectors->n = n;
  for (int i = 0; i < 3; i++) {
    vectors->host[i] = calloc(each, sizeof(float));
    for (size_t at = 0; at < each && i < 2; at++) vectors->host[i][at] = (float)((at * (size_t)(i + 3)) % 17);
    if (result == CUDA_SUCCESS) result = cuMemAlloc(&vectors->device[i], each * sizeof(float));
    if (result == CUDA_SUCCESS) result = cuMemcpyHtoD(vectors->device[i], vectors->host[i], each * sizeof(float));
  }
  return result;
}

static void free_vectors(struct vectors *vectors) {
  for (int i = 0; i < 3; i++) {
    free(vectors->host[i]);
    cuMemFree(vectors->device[i]);
  }
}

static void answer_vectors(struct vectors *vectors, CUresult result, size_t each, float (*right)(const struct vectors *, size_t)) {
  bool same = true;
  if (result == CUDA_SUCCESS) result = cuMemcpyDtoH(vectors->host[2], vectors->device[2], each * sizeof(float));
  for (size_t at = 0; at < each; at++) same = same && fabsf(vectors->host[2][at] - right(vectors, at)) < 1e-3f;
  printf("%d %s\n", result, same ? "right" : "wrong");
  free_vectors(vectors);
}

static float sum_at(const struct vectors *v, size_t at) { return v->host[0][at] + v->host[1][at]; }
static float scaled_at(const struct vectors *v, size_t at) { return 2.5f * v->host[0][at]; }
static float product_at(const struct vectors *v, size_t at) {
  float sum = 0;
  for (size_t k = 0; k < v->n; k++) sum += v->host[0][at / v->n * v->n + k] * v->host[1][k * v->n + at % v->n];
  return sum;
}

static unsigned blocks_for(size_t threads) { return (unsigned)((threads + THREADS - 1) / THREADS); }

static void vecadd(unsigned n, bool bad) {
  struct vectors v;
  CUresult result = make_vectors(&v, n, n);
  CUdeviceptr wrong = 4096;
  void *arguments[] = {bad ? &wrong : &v.device[0], &v.device[1], &v.device[2], &v.n};
  if (result == CUDA_SUCCESS) result = launch(function_of("vecadd"), blocks_for(n), arguments, NULL);
  answer_vectors(&v, result, n, sum_at);
}

static void saxpy(unsigned n) {
  struct vectors v;
  float alpha = 2.5f;
  CUresult result = make_vectors(&v, n, n);
  void *arguments[] = {&v.n, &alpha, &v.device[0], &v.device[2]};
  if (result == CUDA_SUCCESS) result = launch(function_of("saxpy"), blocks_for(n), arguments, NULL);
  answer_vectors(&v, result, n, scaled_at);
}

static void matmul(unsigned n) {
  struct vectors v;
  size_t each = (size_t)n * n;
  CUresult result = make_vectors(&v, n, each);
  void *arguments[] = {&v.device[0], &v.device[1], &v.device[2], &v.n};
  if (result == CUDA_SUCCESS) result = launch(function_of("matmul"), blocks_for(each), arguments, NULL);
  answer_vectors(&v, result, each, product_at);
}

static void graph(int count) {
  struct vectors v;
  CUgraph captured;
  CUgraphExec executable;
  CUstream stream;
  CUresult result = make_vectors(&v, 1000, 1000);
  void *arguments[] = {&v.device[0], &v.device[1], &v.device[2], &v.n};
  CUfunction function = function_of("vecadd");
  if (result == CUDA_SUCCESS) result = cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  if (result == CUDA_SUCCESS) result = cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
  for (int i = 0; i < count && result == CUDA_SUCCESS; i++) result = launch(function, 4, arguments, stream);
  if (result == CUDA_SUCCESS) result = cuStreamEndCapture(stream, &captured);
  if (result == CUDA_SUCCESS) result = cuGraphInstantiate(&executable, captured, 0);
  for (int i = 0; i < 2 && result == CUDA_SUCCESS; i++) result = cuGraphLaunch(executable, stream);
  if (result == CUDA_SUCCESS) result = cuStreamSynchronize(stream);
  answer_vectors(&v, result, 1000, sum_at);
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
  else if (strcmp(word, "run") == 0) run(first, (unsigned)numbers[1], numbers[2], numbers[3], numbers[4]);
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
  else printf("-1 what?\n");
}

int main(void) {
  char line[256];
  setvbuf(stdout, NULL, _IOLBF, 0);
  while (fgets(line, sizeof line, stdin) != NULL) obey(line);
  return 0;
}
