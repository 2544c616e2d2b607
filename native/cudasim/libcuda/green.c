// Green contexts: parts of a device's SMs, whose kernels take no others. They share the primary context's memory.
#include "devices.h"
#include "state.h"

#include <string.h>

/** What cuDevResourceGenerateDesc makes: of the heap, and never given back, as CUDA has no call for it. */
struct CUdevResourceDesc_st {
  unsigned sms;
};

struct CUctx_st *memory_owner(struct CUctx_st *context) { return context->parent == NULL ? context : context->parent; }

static void describe(CUdevResource *resource, unsigned sms) {
  memset(resource, 0, sizeof *resource);
  resource->type = CU_DEV_RESOURCE_TYPE_SM;
  resource->sm.smCount = sms;
}

// SMs go by whole clusters of them (CUDA's guide to green contexts).
static unsigned granule_of(const struct device *device) { return device->facts.major >= 9 ? 8 : 2; }
static unsigned least_of(const struct device *device) { return device->facts.major >= 9 ? 8 : 4; }

EXPORT CUresult cuDeviceGetDevResource(CUdevice index, CUdevResource *resource, CUdevResourceType type) {
  CUresult result = check_ready();
  if (result != CUDA_SUCCESS) return result;
  const struct device *device = device_of(index);
  if (device == NULL) return CUDA_ERROR_INVALID_DEVICE;
  if (resource == NULL || type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_VALUE;
  int sms;
  result = cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, index);
  if (result == CUDA_SUCCESS) describe(resource, (unsigned)sms);
  return result;
}

EXPORT CUresult cuCtxGetDevResource(CUcontext context, CUdevResource *resource, CUdevResourceType type) {
  CUresult result = check_ready();
  if (result != CUDA_SUCCESS) return result;
  if (!is_context(context)) return CUDA_ERROR_INVALID_CONTEXT;
  if (resource == NULL || type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_VALUE;
  describe(resource, context->sm_count);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuGreenCtxGetDevResource(CUgreenCtx green, CUdevResource *resource, CUdevResourceType type) {
  return cuCtxGetDevResource((CUcontext)green, resource, type);
}

// All devices of a node are alike in this.
EXPORT CUresult cuDevSmResourceSplitByCount(CUdevResource *groups, unsigned int *count, const CUdevResource *input,
                                            CUdevResource *remaining, unsigned int flags, unsigned int least) {
  (void)flags;
  CUresult result = check_ready();
  if (result != CUDA_SUCCESS) return result;
  if (count == NULL || input == NULL || input->type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_VALUE;
  const struct device *device = device_of(0);
  unsigned granule = granule_of(device), each = least < least_of(device) ? least_of(device) : least;
  each = (each + granule - 1) / granule * granule;
  unsigned fit = input->sm.smCount / each;
  if (groups == NULL) {
    *count = fit;
    return CUDA_SUCCESS;
  }
  if (*count == 0 || fit == 0) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  if (*count > fit) *count = fit;
  for (unsigned i = 0; i < *count; i++) describe(&groups[i], each);
  unsigned left = input->sm.smCount - *count * each;
  if (remaining != NULL) describe(remaining, left);
  if (remaining != NULL && left == 0) remaining->type = CU_DEV_RESOURCE_TYPE_INVALID;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *made, CUdevResource *resources, unsigned int count) {
  CUresult result = check_ready();
  if (result != CUDA_SUCCESS) return result;
  if (made == NULL || resources == NULL || count == 0) return CUDA_ERROR_INVALID_VALUE;
  unsigned sms = 0;
  for (unsigned i = 0; i < count; i++) {
    if (resources[i].type != CU_DEV_RESOURCE_TYPE_SM || resources[i].sm.smCount == 0)
      return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    sms += resources[i].sm.smCount;
  }
  lock_state();
  CUdevResourceDesc description = heap_take(sizeof *description);
  unlock_state();
  if (description == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  description->sms = sms;
  *made = description;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuGreenCtxCreate(CUgreenCtx *made, CUdevResourceDesc description, CUdevice device, unsigned int flags) {
  CUresult result = check_ready();
  if (result != CUDA_SUCCESS) return result;
  if (made == NULL || description == NULL || flags != CU_GREEN_CTX_DEFAULT_STREAM) return CUDA_ERROR_INVALID_VALUE;
  CUcontext parent, green;
  result = cuDevicePrimaryCtxRetain(&parent, device);
  if (result != CUDA_SUCCESS) return result;
  lock_state();
  result = create_green_context(&green, parent, description->sms);
  unlock_state();
  if (result != CUDA_SUCCESS) cuDevicePrimaryCtxRelease(device);
  else *made = (CUgreenCtx)green;
  return result;
}

static CUresult find(CUgreenCtx given, CUcontext *green) {
  CUresult result = check_ready();
  if (result != CUDA_SUCCESS) return result;
  *green = (CUcontext)given;
  return is_context(*green) && (*green)->parent != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

EXPORT CUresult cuGreenCtxDestroy(CUgreenCtx given) {
  CUcontext green;
  CUresult result = find(given, &green);
  if (result == CUDA_SUCCESS) result = wait_for_context(green);
  if (result != CUDA_SUCCESS) return result;
  CUdevice device = green->device;
  lock_state();
  destroy_context(green);
  unlock_state();
  return cuDevicePrimaryCtxRelease(device);
}

EXPORT CUresult cuCtxFromGreenCtx(CUcontext *context, CUgreenCtx given) {
  CUcontext green;
  CUresult result = find(given, &green);
  if (result == CUDA_SUCCESS) *context = green;
  return result;
}

EXPORT CUresult cuGreenCtxStreamCreate(CUstream *stream, CUgreenCtx given, unsigned int flags, int priority) {
  (void)priority;
  CUcontext green;
  CUresult result = find(given, &green);
  if (result != CUDA_SUCCESS) return result;
  if (stream == NULL || flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  lock_state();
  *stream = make_stream(green, 0);
  unlock_state();
  return *stream == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}
