// What nvcc's output tells of a program's kernels before main: their code, and the stub that stands for each on the host.
#include "runtime.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/** What nvcc puts around the code (its fatbinary_section.h). */
struct wrapper {
  int magic, version;
  const void *image;
  void *unused;
};

struct binary {
  struct binary *next;
  const void *image;
  CUmodule modules[RUNTIME_MAX_DEVICES];
};

struct kernel {
  struct kernel *next;
  struct binary *binary;
  const void *stub;
  const char *name;
  CUfunction functions[RUNTIME_MAX_DEVICES];
};

enum { WRAPPER_MAGIC = 0x466243b1 };

static struct binary *binaries;
static struct kernel *kernels;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

EXPORT void **__cudaRegisterFatBinary(void *given) {
  const struct wrapper *wrapper = given;
  struct binary *binary = calloc(1, sizeof *binary);
  if (binary == NULL || wrapper->magic != WRAPPER_MAGIC) {
    free(binary);
    return NULL;
  }
  binary->image = wrapper->image;
  pthread_mutex_lock(&lock);
  binary->next = binaries;
  binaries = binary;
  pthread_mutex_unlock(&lock);
  return (void **)binary;
}

EXPORT void __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }

EXPORT void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int thread_limit,
                                   void *tid, void *bid, dim3 *block, dim3 *grid, int *warp_size) {
  (void)device, (void)thread_limit, (void)tid, (void)bid, (void)block, (void)grid, (void)warp_size;
  struct kernel *kernel = handle == NULL ? NULL : calloc(1, sizeof *kernel);
  if (kernel == NULL) return; // A launch of it will say that there is none.
  kernel->binary = (struct binary *)handle;
  kernel->stub = host;
  kernel->name = name;
  pthread_mutex_lock(&lock);
  kernel->next = kernels;
  kernels = kernel;
  pthread_mutex_unlock(&lock);
}

EXPORT void __cudaUnregisterFatBinary(void **handle) {
  struct binary *binary = (struct binary *)handle;
  pthread_mutex_lock(&lock);
  for (struct kernel **link = &kernels; *link != NULL;) {
    struct kernel *kernel = *link;
    if (kernel->binary != binary) {
      link = &kernel->next;
      continue;
    }
    *link = kernel->next;
    free(kernel);
  }
  struct binary **link = &binaries;
  while (*link != NULL && *link != binary) link = &(*link)->next;
  if (*link != NULL) {
    *link = binary->next;
    free(binary); // Its modules go with the process: it is unregistered at exit.
  }
  pthread_mutex_unlock(&lock);
}

// At the first use on a device, as lazy loading does.
static cudaError_t load(struct kernel *kernel, int device) {
  CUmodule *module = &kernel->binary->modules[device];
  CUresult result = CUDA_SUCCESS;
  if (*module == NULL) result = DRIVER(cuModuleLoadData)(module, kernel->binary->image);
  if (result == CUDA_SUCCESS && kernel->functions[device] == NULL)
    result = DRIVER(cuModuleGetFunction)(&kernel->functions[device], *module, kernel->name);
  return result == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidDeviceFunction : (cudaError_t)result;
}

cudaError_t find_kernel(const void *stub, CUfunction *found) {
  int device;
  cudaError_t error = ready_context();
  if (error == cudaSuccess) error = cudaGetDevice(&device);
  if (error != cudaSuccess) return error;
  pthread_mutex_lock(&lock);
  struct kernel *kernel = kernels;
  while (kernel != NULL && kernel->stub != stub) kernel = kernel->next;
  error = kernel == NULL ? cudaErrorInvalidDeviceFunction : load(kernel, device);
  if (error == cudaSuccess) *found = kernel->functions[device];
  pthread_mutex_unlock(&lock);
  return error;
}

void forget_modules_of(int device) {
  pthread_mutex_lock(&lock);
  for (struct binary *binary = binaries; binary != NULL; binary = binary->next) binary->modules[device] = NULL;
  for (struct kernel *kernel = kernels; kernel != NULL; kernel = kernel->next) kernel->functions[device] = NULL;
  pthread_mutex_unlock(&lock);
}
