#include "runtime.h"

#include <string.h>

#define DEVICE(pointer) ((CUdeviceptr)(uintptr_t)(pointer))

EXPORT cudaError_t cudaMalloc(void **pointer, size_t bytes) {
  if (pointer == NULL) return keep_error(cudaErrorInvalidValue);
  *pointer = NULL;
  return bytes == 0 ? cudaSuccess : CALL(cuMemAlloc_v2, (CUdeviceptr *)pointer, bytes);
}

EXPORT cudaError_t cudaMallocManaged(void **pointer, size_t bytes, unsigned int flags) {
  return CALL(cuMemAllocManaged, (CUdeviceptr *)pointer, bytes, flags);
}

EXPORT cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height) {
  return CALL(cuMemAllocPitch_v2, (CUdeviceptr *)pointer, pitch, width, height, 4);
}

EXPORT cudaError_t cudaFree(void *pointer) { return CALL(cuMemFree_v2, DEVICE(pointer)); }

EXPORT cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned int flags) {
  return CALL(cuMemHostAlloc, pointer, bytes, flags);
}

EXPORT cudaError_t cudaMallocHost(void **pointer, size_t bytes) { return cudaHostAlloc(pointer, bytes, 0); }

EXPORT cudaError_t cudaFreeHost(void *pointer) { return CALL(cuMemFreeHost, pointer); }

EXPORT cudaError_t cudaMemGetInfo(size_t *available, size_t *total) { return CALL(cuMemGetInfo_v2, available, total); }

EXPORT cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *pointer) {
  cudaError_t error = ready_context();
  if (error != cudaSuccess) return keep_error(error);
  memset(attributes, 0, sizeof *attributes);
  attributes->device = -1;
  unsigned managed = 0;
  // An address that the driver does not know is the host's.
  if (DRIVER(cuPointerGetAttribute)(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, DEVICE(pointer)) != CUDA_SUCCESS) {
    attributes->hostPointer = (void *)(uintptr_t)pointer;
    return cudaSuccess;
  }
  DRIVER(cuPointerGetAttribute)(&attributes->device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, DEVICE(pointer));
  attributes->type = managed ? cudaMemoryTypeManaged : cudaMemoryTypeDevice;
  attributes->devicePointer = (void *)(uintptr_t)pointer;
  attributes->hostPointer = managed ? attributes->devicePointer : NULL;
  return cudaSuccess;
}

static bool is_of_device(const void *pointer) {
  unsigned type;
  return DRIVER(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, DEVICE(pointer)) == CUDA_SUCCESS;
}

static cudaMemcpyKind kind_of(const void *to, const void *from) {
  bool into = is_of_device(to), out = is_of_device(from);
  return into && out ? cudaMemcpyDeviceToDevice : into ? cudaMemcpyHostToDevice : out ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost;
}

static cudaError_t cudaMemcpy_in(int per_thread, void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
  cudaError_t error = ready_context();
  if (error != cudaSuccess) return keep_error(error);
  switch (kind == cudaMemcpyDefault ? kind_of(to, from) : kind) {
  case cudaMemcpyHostToDevice:
    return CALL_IN(per_thread, cuMemcpyHtoD_v2, DEVICE(to), from, bytes);
  case cudaMemcpyDeviceToHost:
    return CALL_IN(per_thread, cuMemcpyDtoH_v2, to, DEVICE(from), bytes);
  case cudaMemcpyDeviceToDevice:
    return CALL_IN(per_thread, cuMemcpyDtoD_v2, DEVICE(to), DEVICE(from), bytes);
  case cudaMemcpyHostToHost:
    memmove(to, from, bytes);
    return cudaSuccess;
  default:
    return keep_error(cudaErrorInvalidMemcpyDirection);
  }
}
IN_BOTH(cudaMemcpy, (void *to, const void *from, size_t bytes, cudaMemcpyKind kind), _ptds, to, from, bytes, kind)

static cudaError_t cudaMemcpyAsync_in(int per_thread, void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                                      cudaStream_t stream) {
  cudaError_t error = ready_context();
  if (error != cudaSuccess) return keep_error(error);
  switch (kind == cudaMemcpyDefault ? kind_of(to, from) : kind) {
  case cudaMemcpyHostToDevice:
    return CALL_IN(per_thread, cuMemcpyHtoDAsync_v2, DEVICE(to), from, bytes, stream);
  case cudaMemcpyDeviceToHost:
    return CALL_IN(per_thread, cuMemcpyDtoHAsync_v2, to, DEVICE(from), bytes, stream);
  case cudaMemcpyDeviceToDevice:
    return CALL_IN(per_thread, cuMemcpyDtoDAsync_v2, DEVICE(to), DEVICE(from), bytes, stream);
  case cudaMemcpyHostToHost:
    error = CALL_IN(per_thread, cuStreamSynchronize, stream);
    if (error == cudaSuccess) memmove(to, from, bytes);
    return error;
  default:
    return keep_error(cudaErrorInvalidMemcpyDirection);
  }
}
IN_BOTH(cudaMemcpyAsync, (void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream), _ptsz, to,
        from, bytes, kind, stream)

static cudaError_t cudaMemset_in(int per_thread, void *to, int value, size_t bytes) {
  return CALL_IN(per_thread, cuMemsetD8_v2, DEVICE(to), (unsigned char)value, bytes);
}
IN_BOTH(cudaMemset, (void *to, int value, size_t bytes), _ptds, to, value, bytes)

static cudaError_t cudaMemsetAsync_in(int per_thread, void *to, int value, size_t bytes, cudaStream_t stream) {
  return CALL_IN(per_thread, cuMemsetD8Async, DEVICE(to), (unsigned char)value, bytes, stream);
}
IN_BOTH(cudaMemsetAsync, (void *to, int value, size_t bytes, cudaStream_t stream), _ptsz, to, value, bytes, stream)

static cudaError_t cudaMallocAsync_in(int per_thread, void **pointer, size_t bytes, cudaStream_t stream) {
  return CALL_IN(per_thread, cuMemAllocAsync, (CUdeviceptr *)pointer, bytes, stream);
}
IN_BOTH(cudaMallocAsync, (void **pointer, size_t bytes, cudaStream_t stream), _ptsz, pointer, bytes, stream)

static cudaError_t cudaFreeAsync_in(int per_thread, void *pointer, cudaStream_t stream) {
  return CALL_IN(per_thread, cuMemFreeAsync, DEVICE(pointer), stream);
}
IN_BOTH(cudaFreeAsync, (void *pointer, cudaStream_t stream), _ptsz, pointer, stream)

EXPORT cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device) {
  return CALL(cuDeviceGetDefaultMemPool, pool, device);
}

EXPORT cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *pointer) {
  return CALL(cuIpcGetMemHandle, handle, DEVICE(pointer));
}

EXPORT cudaError_t cudaIpcOpenMemHandle(void **pointer, cudaIpcMemHandle_t handle, unsigned int flags) {
  return CALL(cuIpcOpenMemHandle_v2, (CUdeviceptr *)pointer, handle, flags);
}

EXPORT cudaError_t cudaIpcCloseMemHandle(void *pointer) { return CALL(cuIpcCloseMemHandle, DEVICE(pointer)); }
