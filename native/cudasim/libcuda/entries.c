// cuGetProcAddress: by the plain name, the newest version that the caller's CUDA has.
#include "state.h"

#include <string.h>

// Looked up by name, so that what is exported and what is in the table cannot differ in their types.
#define ENTRIES(X)                                                                                                    \
  X("cuInit", 2000, cuInit, none)                                                                                     \
  X("cuDriverGetVersion", 2020, cuDriverGetVersion, none)                                                             \
  X("cuGetErrorName", 6000, cuGetErrorName, none)                                                                     \
  X("cuGetErrorString", 6000, cuGetErrorString, none)                                                                 \
  X("cuGetProcAddress", 11030, cuGetProcAddress_v1, none)                                                             \
  X("cuGetProcAddress", 12000, cuGetProcAddress_v2, none)                                                             \
  X("cuGetExportTable", 3000, cuGetExportTable, none)                                                                 \
  X("cuDeviceGet", 2000, cuDeviceGet, none)                                                                           \
  X("cuDeviceGetCount", 2000, cuDeviceGetCount, none)                                                                 \
  X("cuDeviceGetName", 2000, cuDeviceGetName, none)                                                                   \
  X("cuDeviceGetUuid", 11040, cuDeviceGetUuid_v2, none)                                                               \
  X("cuDeviceGetPCIBusId", 4010, cuDeviceGetPCIBusId, none)                                                           \
  X("cuDeviceTotalMem", 3020, cuDeviceTotalMem_v2, none)                                                              \
  X("cuDeviceGetAttribute", 2000, cuDeviceGetAttribute, none)                                                         \
  X("cuDeviceComputeCapability", 2000, cuDeviceComputeCapability, none)                                               \
  X("cuDeviceCanAccessPeer", 4000, cuDeviceCanAccessPeer, none)                                                       \
  X("cuDeviceGetDefaultMemPool", 11020, cuDeviceGetDefaultMemPool, none)                                              \
  X("cuDevicePrimaryCtxRetain", 7000, cuDevicePrimaryCtxRetain, none)                                                 \
  X("cuDevicePrimaryCtxRelease", 11000, cuDevicePrimaryCtxRelease_v2, none)                                           \
  X("cuDevicePrimaryCtxReset", 11000, cuDevicePrimaryCtxReset_v2, none)                                               \
  X("cuDevicePrimaryCtxGetState", 7000, cuDevicePrimaryCtxGetState, none)                                             \
  X("cuDevicePrimaryCtxSetFlags", 11000, cuDevicePrimaryCtxSetFlags_v2, none)                                         \
  X("cuCtxCreate", 3020, cuCtxCreate_v2, none)                                                                        \
  X("cuCtxCreate", 11040, cuCtxCreate_v3, none)                                                                       \
  X("cuCtxCreate", 12050, cuCtxCreate_v4, none)                                                                       \
  X("cuCtxDestroy", 4000, cuCtxDestroy_v2, none)                                                                      \
  X("cuCtxSetCurrent", 4000, cuCtxSetCurrent, none)                                                                   \
  X("cuCtxGetCurrent", 4000, cuCtxGetCurrent, none)                                                                   \
  X("cuCtxPushCurrent", 4000, cuCtxPushCurrent_v2, none)                                                              \
  X("cuCtxPopCurrent", 4000, cuCtxPopCurrent_v2, none)                                                                \
  X("cuCtxGetDevice", 2000, cuCtxGetDevice, none)                                                                     \
  X("cuCtxGetFlags", 7000, cuCtxGetFlags, none)                                                                       \
  X("cuCtxGetApiVersion", 3020, cuCtxGetApiVersion, none)                                                             \
  X("cuCtxGetStreamPriorityRange", 5050, cuCtxGetStreamPriorityRange, none)                                           \
  X("cuCtxSynchronize", 2000, cuCtxSynchronize, none)                                                                 \
  X("cuModuleLoad", 2000, cuModuleLoad, none)                                                                         \
  X("cuModuleLoadData", 2000, cuModuleLoadData, none)                                                                 \
  X("cuModuleLoadDataEx", 2010, cuModuleLoadDataEx, none)                                                             \
  X("cuModuleLoadFatBinary", 2000, cuModuleLoadFatBinary, none)                                                       \
  X("cuModuleUnload", 2000, cuModuleUnload, none)                                                                     \
  X("cuModuleGetFunction", 2000, cuModuleGetFunction, none)                                                           \
  X("cuModuleGetGlobal", 3020, cuModuleGetGlobal_v2, none)                                                            \
  X("cuFuncGetAttribute", 2020, cuFuncGetAttribute, none)                                                             \
  X("cuFuncSetAttribute", 9000, cuFuncSetAttribute, none)                                                             \
  X("cuFuncSetCacheConfig", 3000, cuFuncSetCacheConfig, none)                                                         \
  X("cuOccupancyMaxActiveBlocksPerMultiprocessor", 6050, cuOccupancyMaxActiveBlocksPerMultiprocessor, none)           \
  X("cuMemAlloc", 3020, cuMemAlloc_v2, none)                                                                          \
  X("cuMemAllocPitch", 3020, cuMemAllocPitch_v2, none)                                                                \
  X("cuMemFree", 3020, cuMemFree_v2, none)                                                                            \
  X("cuMemGetInfo", 3020, cuMemGetInfo_v2, none)                                                                      \
  X("cuMemGetAddressRange", 3020, cuMemGetAddressRange_v2, none)                                                      \
  X("cuMemAllocAsync", 11020, cuMemAllocAsync, cuMemAllocAsync_ptsz)                                                  \
  X("cuMemAllocFromPoolAsync", 11020, cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync_ptsz)                          \
  X("cuMemFreeAsync", 11020, cuMemFreeAsync, cuMemFreeAsync_ptsz)                                                     \
  X("cuDeviceGetMemPool", 11020, cuDeviceGetMemPool, none)                                                            \
  X("cuDeviceSetMemPool", 11020, cuDeviceSetMemPool, none)                                                            \
  X("cuMemPoolCreate", 11020, cuMemPoolCreate, none)                                                                  \
  X("cuMemPoolDestroy", 11020, cuMemPoolDestroy, none)                                                                \
  X("cuMemPoolTrimTo", 11020, cuMemPoolTrimTo, none)                                                                  \
  X("cuMemPoolSetAttribute", 11020, cuMemPoolSetAttribute, none)                                                      \
  X("cuMemPoolGetAttribute", 11020, cuMemPoolGetAttribute, none)                                                      \
  X("cuMemPoolSetAccess", 11020, cuMemPoolSetAccess, none)                                                            \
  X("cuMemAllocManaged", 6000, cuMemAllocManaged, none)                                                               \
  X("cuIpcGetMemHandle", 4010, cuIpcGetMemHandle, none)                                                               \
  X("cuIpcOpenMemHandle", 11000, cuIpcOpenMemHandle_v2, none)                                                         \
  X("cuIpcCloseMemHandle", 4010, cuIpcCloseMemHandle, none)                                                           \
  X("cuMemGetAllocationGranularity", 10020, cuMemGetAllocationGranularity, none)                                      \
  X("cuMemAddressReserve", 10020, cuMemAddressReserve, none)                                                          \
  X("cuMemAddressFree", 10020, cuMemAddressFree, none)                                                                \
  X("cuMemCreate", 10020, cuMemCreate, none)                                                                          \
  X("cuMemRelease", 10020, cuMemRelease, none)                                                                        \
  X("cuMemMap", 10020, cuMemMap, none)                                                                                \
  X("cuMemUnmap", 10020, cuMemUnmap, none)                                                                            \
  X("cuMemSetAccess", 10020, cuMemSetAccess, none)                                                                    \
  X("cuDeviceGetDevResource", 12040, cuDeviceGetDevResource, none)                                                    \
  X("cuCtxGetDevResource", 12040, cuCtxGetDevResource, none)                                                          \
  X("cuGreenCtxGetDevResource", 12040, cuGreenCtxGetDevResource, none)                                                \
  X("cuDevSmResourceSplitByCount", 12040, cuDevSmResourceSplitByCount, none)                                          \
  X("cuDevResourceGenerateDesc", 12040, cuDevResourceGenerateDesc, none)                                              \
  X("cuGreenCtxCreate", 12040, cuGreenCtxCreate, none)                                                                \
  X("cuGreenCtxDestroy", 12040, cuGreenCtxDestroy, none)                                                              \
  X("cuCtxFromGreenCtx", 12040, cuCtxFromGreenCtx, none)                                                              \
  X("cuGreenCtxStreamCreate", 12050, cuGreenCtxStreamCreate, none)                                                    \
  X("cuMemAllocHost", 3020, cuMemAllocHost_v2, none)                                                                  \
  X("cuMemHostAlloc", 2020, cuMemHostAlloc, none)                                                                     \
  X("cuMemFreeHost", 2000, cuMemFreeHost, none)                                                                       \
  X("cuMemHostRegister", 6050, cuMemHostRegister_v2, none)                                                            \
  X("cuMemHostUnregister", 4000, cuMemHostUnregister, none)                                                           \
  X("cuMemcpyHtoD", 3020, cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds)                                                      \
  X("cuMemcpyDtoH", 3020, cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds)                                                      \
  X("cuMemcpyDtoD", 3020, cuMemcpyDtoD_v2, cuMemcpyDtoD_v2_ptds)                                                      \
  X("cuMemcpyHtoDAsync", 3020, cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync_v2_ptsz)                                       \
  X("cuMemcpyDtoHAsync", 3020, cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync_v2_ptsz)                                       \
  X("cuMemcpyDtoDAsync", 3020, cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync_v2_ptsz)                                       \
  X("cuMemsetD8", 3020, cuMemsetD8_v2, cuMemsetD8_v2_ptds)                                                            \
  X("cuMemsetD16", 3020, cuMemsetD16_v2, cuMemsetD16_v2_ptds)                                                         \
  X("cuMemsetD32", 3020, cuMemsetD32_v2, cuMemsetD32_v2_ptds)                                                         \
  X("cuMemsetD8Async", 3020, cuMemsetD8Async, cuMemsetD8Async_ptsz)                                                   \
  X("cuMemsetD16Async", 3020, cuMemsetD16Async, cuMemsetD16Async_ptsz)                                                \
  X("cuMemsetD32Async", 3020, cuMemsetD32Async, cuMemsetD32Async_ptsz)                                                \
  X("cuPointerGetAttribute", 4000, cuPointerGetAttribute, none)                                                       \
  X("cuStreamCreate", 2000, cuStreamCreate, none)                                                                     \
  X("cuStreamCreateWithPriority", 5050, cuStreamCreateWithPriority, none)                                             \
  X("cuStreamDestroy", 4000, cuStreamDestroy_v2, none)                                                                \
  X("cuStreamSynchronize", 2000, cuStreamSynchronize, cuStreamSynchronize_ptsz)                                       \
  X("cuStreamQuery", 2000, cuStreamQuery, cuStreamQuery_ptsz)                                                         \
  X("cuStreamWaitEvent", 3020, cuStreamWaitEvent, cuStreamWaitEvent_ptsz)                                             \
  X("cuStreamGetFlags", 5050, cuStreamGetFlags, none)                                                                 \
  X("cuStreamGetPriority", 5050, cuStreamGetPriority, none)                                                           \
  X("cuStreamGetCtx", 9020, cuStreamGetCtx, none)                                                                     \
  X("cuStreamIsCapturing", 10000, cuStreamIsCapturing, cuStreamIsCapturing_ptsz)                                      \
  X("cuStreamBeginCapture", 10010, cuStreamBeginCapture_v2, cuStreamBeginCapture_v2_ptsz)                             \
  X("cuStreamEndCapture", 10000, cuStreamEndCapture, cuStreamEndCapture_ptsz)                                         \
  X("cuEventCreate", 2000, cuEventCreate, none)                                                                       \
  X("cuEventRecord", 2000, cuEventRecord, cuEventRecord_ptsz)                                                         \
  X("cuEventRecordWithFlags", 11010, cuEventRecordWithFlags, cuEventRecordWithFlags_ptsz)                             \
  X("cuEventQuery", 2000, cuEventQuery, none)                                                                         \
  X("cuEventSynchronize", 2000, cuEventSynchronize, none)                                                             \
  X("cuEventDestroy", 4000, cuEventDestroy_v2, none)                                                                  \
  X("cuEventElapsedTime", 2000, cuEventElapsedTime_v2, none)                                                          \
  X("cuLaunchKernel", 4000, cuLaunchKernel, cuLaunchKernel_ptsz)                                                      \
  X("cuLaunchKernelEx", 11060, cuLaunchKernelEx, cuLaunchKernelEx_ptsz)                                               \
  X("cuLaunchCooperativeKernel", 9000, cuLaunchCooperativeKernel, cuLaunchCooperativeKernel_ptsz)                     \
  X("cuGraphInstantiate", 11040, cuGraphInstantiateWithFlags, none)                                                   \
  X("cuGraphInstantiateWithFlags", 11040, cuGraphInstantiateWithFlags, none)                                          \
  X("cuGraphGetNodes", 10000, cuGraphGetNodes, none)                                                                  \
  X("cuGraphNodeGetType", 10000, cuGraphNodeGetType, none)                                                            \
  X("cuGraphKernelNodeGetParams", 12000, cuGraphKernelNodeGetParams_v2, none)                                         \
  X("cuGraphLaunch", 10000, cuGraphLaunch, cuGraphLaunch_ptsz)                                                        \
  X("cuGraphExecDestroy", 10000, cuGraphExecDestroy, none)                                                            \
  X("cuGraphDestroy", 10000, cuGraphDestroy, none)                                                                     \
  X("cuCheckpointProcessGetRestoreThreadId", 12080, cuCheckpointProcessGetRestoreThreadId, none)                      \
  X("cuCheckpointProcessGetState", 12080, cuCheckpointProcessGetState, none)                                          \
  X("cuCheckpointProcessLock", 12080, cuCheckpointProcessLock, none)                                                  \
  X("cuCheckpointProcessCheckpoint", 12080, cuCheckpointProcessCheckpoint, none)                                      \
  X("cuCheckpointProcessRestore", 12080, cuCheckpointProcessRestore, none)                                            \
  X("cuCheckpointProcessUnlock", 12080, cuCheckpointProcessUnlock, none)

typedef void any_function(void);

#undef cuGetProcAddress
CUresult cuGetProcAddress_v1(const char *symbol, void **function, int version, cuuint64_t flags) __asm__("cuGetProcAddress");
EXPORT CUresult cuGetExportTable(const void **table, const CUuuid *id);

// Private tables of the runtime library: there are none, and it says so to its user (error 500).
CUresult cuGetExportTable(const void **table, const CUuuid *id) {
  (void)id;
  if (table == NULL) return CUDA_ERROR_INVALID_VALUE;
  *table = NULL;
  return CUDA_ERROR_NOT_FOUND;
}

// Those that cuda.h does not declare.
CUresult cuModuleLoadFatBinary(CUmodule *, const void *);
CUresult cuMemAllocAsync_ptsz(CUdeviceptr *, size_t, CUstream);
CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *, size_t, CUmemoryPool, CUstream);
CUresult cuMemFreeAsync_ptsz(CUdeviceptr, CUstream);
CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr, const void *, size_t);
CUresult cuMemcpyDtoH_v2_ptds(void *, CUdeviceptr, size_t);
CUresult cuMemcpyDtoD_v2_ptds(CUdeviceptr, CUdeviceptr, size_t);
CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr, const void *, size_t, CUstream);
CUresult cuMemcpyDtoHAsync_v2_ptsz(void *, CUdeviceptr, size_t, CUstream);
CUresult cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr, CUdeviceptr, size_t, CUstream);
CUresult cuMemsetD8_v2_ptds(CUdeviceptr, unsigned char, size_t);
CUresult cuMemsetD16_v2_ptds(CUdeviceptr, unsigned short, size_t);
CUresult cuMemsetD32_v2_ptds(CUdeviceptr, unsigned int, size_t);
CUresult cuMemsetD8Async_ptsz(CUdeviceptr, unsigned char, size_t, CUstream);
CUresult cuMemsetD16Async_ptsz(CUdeviceptr, unsigned short, size_t, CUstream);
CUresult cuMemsetD32Async_ptsz(CUdeviceptr, unsigned int, size_t, CUstream);
CUresult cuStreamSynchronize_ptsz(CUstream);
CUresult cuStreamQuery_ptsz(CUstream);
CUresult cuStreamWaitEvent_ptsz(CUstream, CUevent, unsigned int);
CUresult cuStreamIsCapturing_ptsz(CUstream, CUstreamCaptureStatus *);
CUresult cuStreamBeginCapture_v2_ptsz(CUstream, CUstreamCaptureMode);
CUresult cuStreamEndCapture_ptsz(CUstream, CUgraph *);
CUresult cuEventRecord_ptsz(CUevent, CUstream);
CUresult cuEventRecordWithFlags_ptsz(CUevent, CUstream, unsigned int);
CUresult cuLaunchKernel_ptsz(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                             void **, void **);
CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *, CUfunction, void **, void **);
CUresult cuLaunchCooperativeKernel_ptsz(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                        CUstream, void **);
CUresult cuGraphLaunch_ptsz(CUgraphExec, CUstream);

static any_function *find(const char *symbol, int version, bool per_thread, bool *known) {
  any_function *const none = NULL;
  any_function *found = NULL;
  int found_version = 0;
  *known = false;
#define LOOK(name, since, function, per_thread_function)                                                              \
  if (strcmp(symbol, name) == 0) {                                                                                    \
    any_function *other = (any_function *)per_thread_function;                                                        \
    *known = true;                                                                                                    \
    if (since <= version && since >= found_version) {                                                                 \
      found = per_thread && other != NULL ? other : (any_function *)function;                                         \
      found_version = since;                                                                                          \
    }                                                                                                                 \
  }
  ENTRIES(LOOK)
  return found;
}

EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult *status) {
  if (symbol == NULL || function == NULL || flags > CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
    return CUDA_ERROR_INVALID_VALUE;
  bool known;
  any_function *found = find(symbol, version, flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &known);
  *function = (void *)found;
  if (status != NULL)
    *status = found != NULL ? CU_GET_PROC_ADDRESS_SUCCESS
              : known       ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                            : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return found != NULL ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

EXPORT CUresult cuGetProcAddress_v1(const char *symbol, void **function, int version, cuuint64_t flags) {
  return cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}
