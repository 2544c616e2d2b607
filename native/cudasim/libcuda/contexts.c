#define _GNU_SOURCE
#include "devices.h"
#include "state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_NESTED = 16 };

// Of the thread: what is current, over what was. It goes back with the process's other memory.
static __thread CUcontext stack[MAX_NESTED];
static __thread int depth;

CUresult check_context(struct CUctx_st **context) {
  CUresult result = check_ready();
  if (result != CUDA_SUCCESS) return result;
  if (depth == 0 || stack[depth - 1] == NULL) return CUDA_ERROR_INVALID_CONTEXT;
  if (!is_context(stack[depth - 1])) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  *context = stack[depth - 1];
  return CUDA_SUCCESS;
}

// What a client asks of MPS; 0 where it does not, or where that is no number.
static uint32_t asked_percent(void) {
  const char *text = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
  if (text == NULL) return 0;
  char *end;
  double percent = strtod(text, &end);
  if (end == text || !(percent > 0) || percent > 100) return 0;
  return percent < 1 ? 1 : (uint32_t)percent;
}

static const struct device *device_named(const char *name, size_t length) {
  char *end;
  long index = strtol(name, &end, 10);
  if (end == name + length) return device_of((CUdevice)index);
  for (int i = 0; i < gwsim_state->device_count; i++)
    if (length > 4 && strncmp(gwsim_state->devices[i].uuid, name, length) == 0) return &gwsim_state->devices[i];
  return NULL;
}

// "0=1G,GPU-…=512M". As MPS does, one entry that names no device that is seen drops all of them.
static uint64_t asked_limit(const struct device *device) {
  const char *text = getenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
  uint64_t limit = 0;
  while (text != NULL && *text != '\0') {
    size_t length = strcspn(text, "=");
    if (text[length] == '\0') return 0;
    const struct device *named = device_named(text, length);
    char *unit;
    uint64_t amount = strtoull(text + length + 1, &unit, 10);
    if (named == NULL || unit == text + length + 1) return 0;
    switch (*unit) {
    case 'G':
      amount <<= 30;
      break;
    case 'M':
      amount <<= 20;
      break;
    default:
      return 0;
    }
    if (named == device) limit = amount;
    text = unit + 1;
    if (*text == ',') text++;
    else if (*text != '\0') return 0;
  }
  return limit;
}

// Empty where no MPS daemon is seen in it: such a process is an ordinary one, without a word.
static void find_pipe_directory(char *directory, size_t size) {
  const char *given = getenv("CUDA_MPS_PIPE_DIRECTORY");
  char mark[GWSIM_PATH_LENGTH + sizeof GWSIM_MPS_MARK + 1];
  int length = snprintf(directory, size, "%s", given == NULL ? "/tmp/nvidia-mps" : given);
  while (length > 1 && (size_t)length < size && directory[length - 1] == '/') directory[--length] = '\0';
  snprintf(mark, sizeof mark, "%s/%s", directory, GWSIM_MPS_MARK);
  if (length <= 0 || (size_t)length >= size || access(mark, F_OK) != 0) directory[0] = '\0';
}

// A row for what the daemon makes of the request. Under the lock.
static CUresult add_context(CUcontext *made, const struct gwsim_context_request *request) {
  struct CUctx_st *context = NULL;
  for (int i = 0; i < MAX_CONTEXTS && context == NULL; i++)
    if (gwsim_state->contexts[i].kind == FREE_ROW) context = &gwsim_state->contexts[i];
  if (context == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  struct gwsim_context answer;
  CUresult result = call_daemon(GWSIM_CONTEXT_CREATE, request, sizeof *request, &answer, sizeof answer);
  if (result != CUDA_SUCCESS) return result;
  memset(context, 0, sizeof *context);
  context->kind = CONTEXT;
  context->id = answer.id;
  context->sm_count = answer.sm_count;
  context->legacy = make_stream(context, GWSIM_LEGACY);
  *made = context;
  return CUDA_SUCCESS;
}

CUresult create_context(CUcontext *made, CUdevice index, unsigned flags, uint32_t affinity_sms, bool primary) {
  const struct device *device = device_of(index);
  if (device == NULL) return CUDA_ERROR_INVALID_DEVICE;
  struct gwsim_context_request request = {.device = device->facts.index, .instance = device->instance};
  find_pipe_directory(request.pipe_directory, sizeof request.pipe_directory);
  request.percent = asked_percent();
  request.limit_bytes = asked_limit(device);
  if (affinity_sms > 0) {
    uint32_t percent = (affinity_sms * 100 + device->sm_count - 1) / device->sm_count;
    if (request.percent == 0 || percent < request.percent) request.percent = percent > 100 ? 100 : percent;
  }
  CUresult result = add_context(made, &request);
  if (result != CUDA_SUCCESS) return result;
  (*made)->device = index;
  (*made)->flags = flags;
  (*made)->primary = primary;
  return CUDA_SUCCESS;
}

CUresult create_green_context(CUcontext *made, CUcontext parent, uint32_t sms) {
  const struct device *device = device_of(parent->device);
  struct gwsim_context_request request = {
      .device = device->facts.index, .instance = device->instance, .parent = parent->id, .sms = sms};
  CUresult result = add_context(made, &request);
  if (result != CUDA_SUCCESS) return result;
  (*made)->device = parent->device;
  (*made)->parent = parent;
  return CUDA_SUCCESS;
}

void destroy_context(struct CUctx_st *context) {
  struct gwsim_context request = {.id = context->id};
  for (int i = 0; i < MAX_CONTEXTS; i++) {
    struct CUctx_st *other = &gwsim_state->contexts[i];
    if (other->kind == CONTEXT && other->parent == context) destroy_context(other);
  }
  unload_modules_of(context);
  free_blocks_of(context);
  for (int i = 0; i < GWSIM_STREAMS; i++) {
    CUstream stream = &gwsim_state->streams[i];
    if (stream->kind == STREAM && stream->context == context) forget_stream(stream);
  }
  for (int i = 0; i < GWSIM_EVENT_SLOTS; i++) gwsim_state->events[i].capture = NULL;
  call_daemon(GWSIM_CONTEXT_DESTROY, &request, sizeof request, NULL, 0);
  context->kind = FREE_ROW;
}

static CUresult make_current(CUcontext *context, CUdevice device, unsigned flags, uint32_t affinity_sms) {
  CUresult result = check_ready();
  if (result != CUDA_SUCCESS) return result;
  if (context == NULL) return CUDA_ERROR_INVALID_VALUE;
  if (depth == MAX_NESTED) return CUDA_ERROR_OUT_OF_MEMORY;
  lock_state();
  result = create_context(context, device, flags, affinity_sms, false);
  unlock_state();
  if (result == CUDA_SUCCESS) stack[depth++] = *context;
  return result;
}

EXPORT CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device) {
  return make_current(context, device, flags, 0);
}

EXPORT CUresult cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *affinity, int count, unsigned int flags,
                               CUdevice device) {
  if (count > 1 || (count == 1 && (affinity == NULL || affinity->type != CU_EXEC_AFFINITY_TYPE_SM_COUNT)))
    return CUDA_ERROR_INVALID_VALUE;
  return make_current(context, device, flags, count == 1 ? affinity->param.smCount.val : 0);
}

EXPORT CUresult cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *params, unsigned int flags, CUdevice device) {
  if (params == NULL) return cuCtxCreate_v2(context, flags, device);
  return cuCtxCreate_v3(context, params->execAffinityParams, params->numExecAffinityParams, flags, device);
}

EXPORT CUresult cuCtxDestroy_v2(CUcontext context) {
  if (gwsim_state == NULL || gwsim_state->pid != getpid()) return CUDA_ERROR_NOT_INITIALIZED;
  lock_state();
  bool known = is_context(context) && !context->primary && context->parent == NULL;
  if (known) destroy_context(context);
  unlock_state();
  if (!known) return CUDA_ERROR_INVALID_CONTEXT;
  if (depth > 0 && stack[depth - 1] == context) depth--;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
  CUresult result = check_ready();
  if (result == CUDA_ERROR_NOT_INITIALIZED) return result;
  if (context != NULL && !is_context(context)) return CUDA_ERROR_INVALID_CONTEXT;
  if (depth == 0) depth = 1;
  stack[depth - 1] = context;
  if (context == NULL) depth--;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *context) {
  CUresult result = check_ready();
  if (result == CUDA_ERROR_NOT_INITIALIZED) return result;
  if (context == NULL) return CUDA_ERROR_INVALID_VALUE;
  *context = depth == 0 ? NULL : stack[depth - 1];
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context) {
  CUresult result = check_ready();
  if (result == CUDA_ERROR_NOT_INITIALIZED) return result;
  if (!is_context(context) || depth == MAX_NESTED) return CUDA_ERROR_INVALID_CONTEXT;
  stack[depth++] = context;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *context) {
  CUresult result = check_ready();
  if (result == CUDA_ERROR_NOT_INITIALIZED) return result;
  if (depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
  depth--;
  if (context != NULL) *context = stack[depth];
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetDevice(CUdevice *device) {
  struct CUctx_st *context;
  CUresult result = check_context(&context);
  if (result == CUDA_SUCCESS) *device = context->device;
  return result;
}

EXPORT CUresult cuCtxGetFlags(unsigned int *flags) {
  struct CUctx_st *context;
  CUresult result = check_context(&context);
  if (result == CUDA_SUCCESS) *flags = context->flags;
  return result;
}

EXPORT CUresult cuCtxGetApiVersion(CUcontext context, unsigned int *version) {
  (void)context;
  *version = GWSIM_CUDA_VERSION;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  if (least != NULL) *least = 0;
  if (greatest != NULL) *greatest = 0;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSynchronize(void) {
  struct CUctx_st *context;
  CUresult result = check_context(&context);
  return result == CUDA_SUCCESS ? wait_for_context(context) : result;
}
