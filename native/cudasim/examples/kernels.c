#include "kernels.h"

#include <math.h>
#include <stdlib.h>

static const char ptx[] =
#include "../../../runtimes/cuda/gpuwhisk_kernels.h"
    ;

enum { THREADS = 256 };

static CUmodule module;

CUfunction function_of(const char *name) {
  CUfunction function = NULL;
  if (module == NULL && cuModuleLoadData(&module, ptx) != CUDA_SUCCESS) return NULL;
  return cuModuleGetFunction(&function, module, name) == CUDA_SUCCESS ? function : NULL;
}

CUresult launch(CUfunction function, unsigned blocks, void **arguments, CUstream stream) {
  return cuLaunchKernel(function, blocks, 1, 1, THREADS, 1, 1, 0, stream, arguments, NULL);
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

void vecadd(unsigned n, bool bad) {
  struct vectors v;
  CUresult result = make_vectors(&v, n, n);
  CUdeviceptr wrong = 4096;
  void *arguments[] = {bad ? &wrong : &v.device[0], &v.device[1], &v.device[2], &v.n};
  if (result == CUDA_SUCCESS) result = launch(function_of("vecadd"), blocks_for(n), arguments, NULL);
  answer_vectors(&v, result, n, sum_at);
}

void saxpy(unsigned n) {
  struct vectors v;
  float alpha = 2.5f;
  CUresult result = make_vectors(&v, n, n);
  void *arguments[] = {&v.n, &alpha, &v.device[0], &v.device[2]};
  if (result == CUDA_SUCCESS) result = launch(function_of("saxpy"), blocks_for(n), arguments, NULL);
  answer_vectors(&v, result, n, scaled_at);
}

void matmul(unsigned n) {
  struct vectors v;
  size_t each = (size_t)n * n;
  CUresult result = make_vectors(&v, n, each);
  void *arguments[] = {&v.device[0], &v.device[1], &v.device[2], &v.n};
  if (result == CUDA_SUCCESS) result = launch(function_of("matmul"), blocks_for(each), arguments, NULL);
  answer_vectors(&v, result, each, product_at);
}

void graph(int count) {
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
