// The parts of the stand-in for CUDA's runtime library. As NVIDIA's does, it opens the driver's library, looks up
// cuGetProcAddress_v2 there and asks that for all else, once for the default stream and once for the threads' own.
#ifndef GPUWHISK_CUDASIM_RUNTIME_H
#define GPUWHISK_CUDASIM_RUNTIME_H

#include "../include/cuda_runtime.h"

#include <stdbool.h>

#define EXPORT __attribute__((visibility("default")))

/** ENTRY(name that cuGetProcAddress knows, symbol that cuda.h declares it by) */
#define DRIVER_ENTRIES(ENTRY)                                                                                         \
  ENTRY("cuInit", cuInit)                                                                                             \
  ENTRY("cuDriverGetVersion", cuDriverGetVersion)                                                                     \
  ENTRY("cuDeviceGetCount", cuDeviceGetCount)                                                                         \
  ENTRY("cuDeviceGetName", cuDeviceGetName)                                                                           \
  ENTRY("cuDeviceGetUuid", cuDeviceGetUuid_v2)                                                                        \
  ENTRY("cuDeviceTotalMem", cuDeviceTotalMem_v2)                                                                      \
  ENTRY("cuDeviceGetAttribute", cuDeviceGetAttribute)                                                                 \
  ENTRY("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain)                                                         \
  ENTRY("cuDevicePrimaryCtxReset", cuDevicePrimaryCtxReset_v2)                                                        \
  ENTRY("cuCtxGetCurrent", cuCtxGetCurrent)                                                                           \
  ENTRY("cuCtxSetCurrent", cuCtxSetCurrent)                                                                           \
  ENTRY("cuCtxGetDevice", cuCtxGetDevice)                                                                             \
  ENTRY("cuCtxSynchronize", cuCtxSynchronize)                                                                         \
  ENTRY("cuModuleLoadData", cuModuleLoadData)                                                                         \
  ENTRY("cuModuleGetFunction", cuModuleGetFunction)                                                                   \
  ENTRY("cuModuleUnload", cuModuleUnload)                                                                             \
  ENTRY("cuFuncGetAttribute", cuFuncGetAttribute)                                                                     \
  ENTRY("cuFuncSetAttribute", cuFuncSetAttribute)                                                                     \
  ENTRY("cuOccupancyMaxActiveBlocksPerMultiprocessor", cuOccupancyMaxActiveBlocksPerMultiprocessor)                   \
  ENTRY("cuMemAlloc", cuMemAlloc_v2)                                                                                  \
  ENTRY("cuMemAllocPitch", cuMemAllocPitch_v2)                                                                        \
  ENTRY("cuMemAllocManaged", cuMemAllocManaged)                                                                       \
  ENTRY("cuMemFree", cuMemFree_v2)                                                                                    \
  ENTRY("cuMemGetInfo", cuMemGetInfo_v2)                                                                              \
  ENTRY("cuMemHostAlloc", cuMemHostAlloc)                                                                             \
  ENTRY("cuMemFreeHost", cuMemFreeHost)                                                                               \
  ENTRY("cuMemAllocAsync", cuMemAllocAsync)                                                                           \
  ENTRY("cuMemFreeAsync", cuMemFreeAsync)                                                                             \
  ENTRY("cuDeviceGetDefaultMemPool", cuDeviceGetDefaultMemPool)                                                       \
  ENTRY("cuMemcpyHtoD", cuMemcpyHtoD_v2)                                                                              \
  ENTRY("cuMemcpyDtoH", cuMemcpyDtoH_v2)                                                                              \
  ENTRY("cuMemcpyDtoD", cuMemcpyDtoD_v2)                                                                              \
  ENTRY("cuMemcpyHtoDAsync", cuMemcpyHtoDAsync_v2)                                                                    \
  ENTRY("cuMemcpyDtoHAsync", cuMemcpyDtoHAsync_v2)                                                                    \
  ENTRY("cuMemcpyDtoDAsync", cuMemcpyDtoDAsync_v2)                                                                    \
  ENTRY("cuMemsetD8", cuMemsetD8_v2)                                                                                  \
  ENTRY("cuMemsetD8Async", cuMemsetD8Async)                                                                           \
  ENTRY("cuPointerGetAttribute", cuPointerGetAttribute)                                                               \
  ENTRY("cuIpcGetMemHandle", cuIpcGetMemHandle)                                                                       \
  ENTRY("cuIpcOpenMemHandle", cuIpcOpenMemHandle_v2)                                                                  \
  ENTRY("cuIpcCloseMemHandle", cuIpcCloseMemHandle)                                                                   \
  ENTRY("cuStreamCreateWithPriority", cuStreamCreateWithPriority)                                                     \
  ENTRY("cuStreamDestroy", cuStreamDestroy_v2)                                                                        \
  ENTRY("cuStreamSynchronize", cuStreamSynchronize)                                                                   \
  ENTRY("cuStreamQuery", cuStreamQuery)                                                                               \
  ENTRY("cuStreamWaitEvent", cuStreamWaitEvent)                                                                       \
  ENTRY("cuStreamIsCapturing", cuStreamIsCapturing)                                                                   \
  ENTRY("cuStreamBeginCapture", cuStreamBeginCapture_v2)                                                              \
  ENTRY("cuStreamEndCapture", cuStreamEndCapture)                                                                     \
  ENTRY("cuEventCreate", cuEventCreate)                                                                               \
  ENTRY("cuEventRecord", cuEventRecord)                                                                               \
  ENTRY("cuEventQuery", cuEventQuery)                                                                                 \
  ENTRY("cuEventSynchronize", cuEventSynchronize)                                                                     \
  ENTRY("cuEventElapsedTime", cuEventElapsedTime_v2)                                                                  \
  ENTRY("cuEventDestroy", cuEventDestroy_v2)                                                                          \
  ENTRY("cuLaunchKernel", cuLaunchKernel)                                                                             \
  ENTRY("cuLaunchKernelEx", cuLaunchKernelEx)                                                                         \
  ENTRY("cuLaunchCooperativeKernel", cuLaunchCooperativeKernel)                                                       \
  ENTRY("cuGraphInstantiateWithFlags", cuGraphInstantiateWithFlags)                                                   \
  ENTRY("cuGraphLaunch", cuGraphLaunch)                                                                               \
  ENTRY("cuGraphExecDestroy", cuGraphExecDestroy)                                                                     \
  ENTRY("cuGraphDestroy", cuGraphDestroy)

struct driver {
#define ENTRY(name, symbol) __typeof__(&(symbol)) symbol;
  DRIVER_ENTRIES(ENTRY)
#undef ENTRY
};

/** Of the default stream, and of the threads' own (`_ptsz`). */
extern struct driver runtime_drivers[2];
#define DRIVER(call) runtime_drivers[0].call

enum { RUNTIME_MAX_DEVICES = 64 };

/** Loads the driver's library and its entry points, once. */
cudaError_t ready_driver(void);
/** And makes the device's primary context the thread's, unless the program has made one current. */
cudaError_t ready_context(void);
/** Any entry point of the driver, by its plain name. */
void *find_driver_entry(const char *name, bool per_thread);

/** Keeps an error for cudaGetLastError; returns it. */
cudaError_t keep_error(cudaError_t error);

/** Calls the driver with the thread's context current, and keeps its error. */
#define CALL(call, ...)                                                                                               \
  ({                                                                                                                  \
    cudaError_t error = ready_context();                                                                              \
    keep_error(error == cudaSuccess ? (cudaError_t)DRIVER(call)(__VA_ARGS__) : error);                                \
  })
/** The same for the stream of `per_thread`. */
#define CALL_IN(per_thread, call, ...)                                                                                \
  ({                                                                                                                  \
    cudaError_t error = ready_context();                                                                              \
    keep_error(error == cudaSuccess ? (cudaError_t)runtime_drivers[per_thread].call(__VA_ARGS__) : error);            \
  })

/** Defines an entry point and its form for the threads' own default streams. */
#define IN_BOTH(name, parameters, suffix, ...)                                                                        \
  EXPORT cudaError_t name parameters { return name##_in(0, __VA_ARGS__); }                                            \
  EXPORT cudaError_t name##suffix parameters;                                                                         \
  EXPORT cudaError_t name##suffix parameters { return name##_in(1, __VA_ARGS__); }

// registration.c
/** The kernel that a stub of the program stands for, on the thread's device. */
cudaError_t find_kernel(const void *stub, CUfunction *kernel);
/** After a reset the modules of a device are gone. */
void forget_modules_of(int device);

#endif
