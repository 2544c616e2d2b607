#include "state.h"

static bool is_pool(CUmemoryPool pool) {
  const struct device *device = (const struct device *)pool;
  return device >= gwsim_state->devices && device < gwsim_state->devices + gwsim_state->device_count;
}

// In stream order: taken at once, given back when what came before is over. No pool keeps anything.
static CUresult allocate_async(CUdeviceptr *pointer, size_t bytes, CUstream given, bool per_thread) {
  CUstream stream;
  CUresult result = resolve_stream(given, per_thread, &stream);
  if (result != CUDA_SUCCESS) return result;
  if (stream->capture != NULL) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return cuMemAlloc_v2(pointer, bytes);
}

static CUresult free_async(CUdeviceptr pointer, CUstream given, bool per_thread) {
  CUstream stream;
  CUresult result = resolve_stream(given, per_thread, &stream);
  if (result != CUDA_SUCCESS) return result;
  if (stream->capture != NULL) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return give_back(pointer);
}

EXPORT CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t bytes, CUstream stream) {
  return allocate_async(pointer, bytes, stream, false);
}
EXPORT CUresult cuMemAllocAsync_ptsz(CUdeviceptr *pointer, size_t bytes, CUstream stream) {
  return allocate_async(pointer, bytes, stream, true);
}
EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool, CUstream stream) {
  return !is_pool(pool) ? CUDA_ERROR_INVALID_VALUE : allocate_async(pointer, bytes, stream, false);
}
EXPORT CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool, CUstream stream) {
  return !is_pool(pool) ? CUDA_ERROR_INVALID_VALUE : allocate_async(pointer, bytes, stream, true);
}
EXPORT CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) { return free_async(pointer, stream, false); }
EXPORT CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream) { return free_async(pointer, stream, true); }

static CUresult find_pool(CUmemoryPool *pool, CUdevice device) {
  CUresult result = check_ready();
  if (result == CUDA_ERROR_NOT_INITIALIZED) return result;
  if (pool == NULL || device < 0 || device >= gwsim_state->device_count) return CUDA_ERROR_INVALID_DEVICE;
  *pool = (CUmemoryPool)&gwsim_state->devices[device];
  return CUDA_SUCCESS;
}

// One pool a device. A program's own are the same: since none keeps anything, nothing tells them apart.
EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device) { return find_pool(pool, device); }
EXPORT CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device) { return find_pool(pool, device); }

EXPORT CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  CUmemoryPool own;
  CUresult result = find_pool(&own, device);
  if (result != CUDA_SUCCESS) return result;
  return pool == own ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props) {
  if (props == NULL || props->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
  return find_pool(pool, props->location.id);
}

static CUresult check_pool(CUmemoryPool pool) {
  CUresult result = check_ready();
  if (result != CUDA_SUCCESS) return result;
  return is_pool(pool) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool) { return check_pool(pool); }

EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
  (void)keep;
  return check_pool(pool);
}

EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
  (void)attribute;
  return value == NULL ? CUDA_ERROR_INVALID_VALUE : check_pool(pool);
}

// Reserved memory equals used memory: the pool keeps none of its own.
EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
  CUresult result = check_pool(pool);
  if (result != CUDA_SUCCESS) return result;
  if (value == NULL) return CUDA_ERROR_INVALID_VALUE;
  if (attribute >= CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) *(cuuint64_t *)value = 0;
  else *(int *)value = 1;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *descriptors, size_t count) {
  (void)count;
  return descriptors == NULL ? CUDA_ERROR_INVALID_VALUE : check_pool(pool);
}
