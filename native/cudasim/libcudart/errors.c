#include "runtime.h"

// The numbers are the driver's; one that the context keeps comes back with every call.
static __thread cudaError_t last;

cudaError_t keep_error(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) last = error;
  return error;
}

EXPORT cudaError_t cudaPeekAtLastError(void) { return last; }

EXPORT cudaError_t cudaGetLastError(void) {
  cudaError_t error = last;
  last = cudaSuccess;
  return error;
}

static const struct {
  cudaError_t error;
  const char *name, *text;
} rows[] = {
#define ROW(error, text) {error, #error, text}
    ROW(cudaSuccess, "no error"),
    ROW(cudaErrorInvalidValue, "invalid argument"),
    ROW(cudaErrorMemoryAllocation, "out of memory"),
    ROW(cudaErrorInitializationError, "initialization error"),
    ROW(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    ROW(cudaErrorInvalidDevicePointer, "invalid device pointer"),
    ROW(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    ROW(cudaErrorMissingConfiguration, "__global__ function call is not configured"),
    ROW(cudaErrorInvalidDeviceFunction, "invalid device function"),
    ROW(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    ROW(cudaErrorInvalidDevice, "invalid device ordinal"),
    ROW(cudaErrorInvalidKernelImage, "device kernel image is invalid"),
    ROW(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    ROW(cudaErrorSymbolNotFound, "named symbol not found"),
    ROW(cudaErrorNotReady, "device not ready"),
    ROW(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    ROW(cudaErrorUnknown, "unknown error"),
};

EXPORT const char *cudaGetErrorName(cudaError_t error) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].error == error) return rows[i].name;
  return "unrecognized error code";
}

EXPORT const char *cudaGetErrorString(cudaError_t error) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].error == error) return rows[i].text;
  return "unrecognized error code";
}
