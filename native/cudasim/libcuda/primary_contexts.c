// The context of a device that all of a process share.
#include "devices.h"
#include "state.h"

#include <unistd.h>

static struct CUctx_st *primary_of(CUdevice device) {
  for (int i = 0; i < MAX_CONTEXTS; i++) {
    struct CUctx_st *context = &gwsim_state->contexts[i];
    if (context->kind == CONTEXT && context->primary && context->device == device) return context;
  }
  return NULL;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *made, CUdevice device) {
  CUresult result = check_ready();
  if (result != CUDA_SUCCESS) return result;
  if (made == NULL) return CUDA_ERROR_INVALID_VALUE;
  lock_state();
  struct CUctx_st *context = primary_of(device);
  if (context == NULL) result = create_context(&context, device, 0, 0, true);
  if (result == CUDA_SUCCESS) {
    context->uses++;
    *made = context;
  }
  unlock_state();
  return result;
}

static CUresult end_primary(CUdevice device, bool at_once) {
  if (gwsim_state == NULL || gwsim_state->pid != getpid()) return CUDA_ERROR_NOT_INITIALIZED;
  lock_state();
  struct CUctx_st *context = primary_of(device);
  if (context != NULL && (at_once || --context->uses == 0)) destroy_context(context);
  unlock_state();
  return context == NULL && !at_once ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) { return end_primary(device, false); }
EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) { return end_primary(device, true); }

EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active) {
  CUresult result = check_ready();
  if (result == CUDA_ERROR_NOT_INITIALIZED) return result;
  if (device_of(device) == NULL) return CUDA_ERROR_INVALID_DEVICE;
  if (flags != NULL) *flags = 0;
  if (active != NULL) *active = primary_of(device) != NULL;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags) {
  (void)flags; // All ways of waiting are one here.
  CUresult result = check_ready();
  if (result == CUDA_ERROR_NOT_INITIALIZED) return result;
  return device_of(device) == NULL ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}
