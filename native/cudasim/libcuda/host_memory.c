#include "state.h"

#include <stdlib.h>

// Host memory is as good as pinned: the stand-in copies it by hand.
EXPORT CUresult cuMemHostAlloc(void **pointer, size_t bytes, unsigned int flags) {
  (void)flags;
  struct CUctx_st *context;
  CUresult result = check_context(&context);
  if (result != CUDA_SUCCESS) return result;
  if (pointer == NULL || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  return posix_memalign(pointer, 4096, bytes) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuMemAllocHost_v2(void **pointer, size_t bytes) { return cuMemHostAlloc(pointer, bytes, 0); }

EXPORT CUresult cuMemFreeHost(void *pointer) {
  free(pointer);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned int flags) {
  (void)flags;
  struct CUctx_st *context;
  CUresult result = check_context(&context);
  if (result != CUDA_SUCCESS) return result;
  return pointer == NULL || bytes == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostUnregister(void *pointer) { return pointer == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }
