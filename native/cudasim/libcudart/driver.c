#define _GNU_SOURCE
#include "runtime.h"

#include <dlfcn.h>
#include <pthread.h>

struct driver runtime_drivers[2];

static pthread_once_t once = PTHREAD_ONCE_INIT;
static cudaError_t loaded = cudaErrorInitializationError;
static __typeof__(&cuGetProcAddress_v2) get_proc_address;

static __thread int thread_device;
static CUcontext contexts[RUNTIME_MAX_DEVICES];
static pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;

void *find_driver_entry(const char *name, bool per_thread) {
  void *found = NULL;
  cuuint64_t flags = per_thread ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : CU_GET_PROC_ADDRESS_LEGACY_STREAM;
  if (get_proc_address == NULL) return NULL;
  return get_proc_address(name, &found, CUDART_VERSION, flags, NULL) == CUDA_SUCCESS ? found : NULL;
}

static bool find_all(void) {
  for (int per_thread = 0; per_thread < 2; per_thread++) {
    struct driver *driver = &runtime_drivers[per_thread];
#define ENTRY(name, symbol)                                                                                           \
  driver->symbol = (__typeof__(driver->symbol))find_driver_entry(name, per_thread);                                   \
  if (driver->symbol == NULL) return false;
    DRIVER_ENTRIES(ENTRY)
#undef ENTRY
  }
  return true;
}

static void load(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    loaded = cudaErrorNoDevice;
    return;
  }
  get_proc_address = (__typeof__(get_proc_address))dlsym(library, "cuGetProcAddress_v2");
  if (get_proc_address == NULL || !find_all()) return;
  loaded = (cudaError_t)DRIVER(cuInit)(0);
}

cudaError_t ready_driver(void) {
  pthread_once(&once, load);
  return loaded;
}

static cudaError_t primary_of(int device, CUcontext *context) {
  pthread_mutex_lock(&contexts_lock);
  cudaError_t error = cudaSuccess;
  if (contexts[device] == NULL) error = (cudaError_t)DRIVER(cuDevicePrimaryCtxRetain)(&contexts[device], device);
  *context = contexts[device];
  pthread_mutex_unlock(&contexts_lock);
  return error;
}

static cudaError_t bind_primary(void) {
  CUcontext primary;
  cudaError_t error = primary_of(thread_device, &primary);
  return error == cudaSuccess ? (cudaError_t)DRIVER(cuCtxSetCurrent)(primary) : error;
}

cudaError_t ready_context(void) {
  cudaError_t error = ready_driver();
  CUcontext current = NULL;
  if (error == cudaSuccess) error = (cudaError_t)DRIVER(cuCtxGetCurrent)(&current);
  return error == cudaSuccess && current == NULL ? bind_primary() : error;
}

EXPORT cudaError_t cudaGetDeviceCount(int *count) {
  cudaError_t error = ready_driver();
  return keep_error(error == cudaSuccess ? (cudaError_t)DRIVER(cuDeviceGetCount)(count) : error);
}

EXPORT cudaError_t cudaSetDevice(int device) {
  int count;
  cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) return error;
  if (device < 0 || device >= count || device >= RUNTIME_MAX_DEVICES) return keep_error(cudaErrorInvalidDevice);
  thread_device = device;
  return keep_error(bind_primary()); // From CUDA 12 on it makes the context at once.
}

EXPORT cudaError_t cudaGetDevice(int *device) {
  cudaError_t error = ready_driver();
  if (error != cudaSuccess) return keep_error(error);
  CUdevice current;
  *device = DRIVER(cuCtxGetDevice)(&current) == CUDA_SUCCESS ? current : thread_device;
  return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceReset(void) {
  int device;
  cudaError_t error = cudaGetDevice(&device);
  if (error != cudaSuccess) return error;
  forget_modules_of(device);
  pthread_mutex_lock(&contexts_lock);
  contexts[device] = NULL;
  pthread_mutex_unlock(&contexts_lock);
  DRIVER(cuCtxSetCurrent)(NULL);
  return keep_error((cudaError_t)DRIVER(cuDevicePrimaryCtxReset_v2)(device));
}

EXPORT cudaError_t cudaDeviceSynchronize(void) { return CALL(cuCtxSynchronize); }

EXPORT cudaError_t cudaDriverGetVersion(int *version) {
  cudaError_t error = ready_driver();
  return keep_error(error == cudaSuccess ? (cudaError_t)DRIVER(cuDriverGetVersion)(version) : error);
}

EXPORT cudaError_t cudaRuntimeGetVersion(int *version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

EXPORT cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags, int *status) {
  cudaError_t error = ready_driver();
  if (error != cudaSuccess) return keep_error(error);
  *function = find_driver_entry(symbol, flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  if (status != NULL) *status = *function == NULL ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND : CU_GET_PROC_ADDRESS_SUCCESS;
  return cudaSuccess;
}
