#include "state.h"

#include <unistd.h>

static CUresult find(CUevent event) {
  CUresult result = check_ready();
  if (result != CUDA_SUCCESS) return result;
  return is_event(event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult cuEventCreate(CUevent *made, unsigned int flags) {
  struct CUctx_st *context;
  CUresult result = check_context(&context);
  if (result != CUDA_SUCCESS) return result;
  if (made == NULL) return CUDA_ERROR_INVALID_VALUE;
  result = CUDA_ERROR_OUT_OF_MEMORY;
  lock_state();
  for (uint32_t i = 0; i < GWSIM_EVENT_SLOTS && result != CUDA_SUCCESS; i++) {
    CUevent event = &gwsim_state->events[i];
    if (event->kind == EVENT) continue;
    event->kind = EVENT;
    event->slot = i;
    event->flags = flags;
    event->recorded = event->sequence = 0;
    event->capture = NULL;
    *made = event;
    result = CUDA_SUCCESS;
  }
  unlock_state();
  return result;
}

EXPORT CUresult cuEventDestroy_v2(CUevent event) {
  if (gwsim_state == NULL || gwsim_state->pid != getpid()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!is_event(event)) return CUDA_ERROR_INVALID_HANDLE;
  event->kind = FREE_ROW;
  return CUDA_SUCCESS;
}

static CUresult record(CUevent event, CUstream given, bool per_thread) {
  CUstream stream;
  CUresult result = find(event);
  if (result == CUDA_SUCCESS) result = resolve_stream(given, per_thread, &stream);
  if (result != CUDA_SUCCESS) return result;
  event->capture = stream->capture;
  if (stream->capture != NULL) return CUDA_SUCCESS; // What is recorded while capturing is an order within the graph.
  struct gwsim_entry entry = {.type = GWSIM_RECORD};
  entry.event.slot = event->slot;
  entry.event.generation = event->generation + 1;
  uint64_t sequence;
  result = submit(stream, &entry, &sequence);
  if (result != CUDA_SUCCESS) return result;
  event->recorded = ++event->generation;
  event->stream = stream->slot;
  event->sequence = sequence;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuEventRecord(CUevent event, CUstream stream) { return record(event, stream, false); }
EXPORT CUresult cuEventRecord_ptsz(CUevent event, CUstream stream) { return record(event, stream, true); }

EXPORT CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags) {
  (void)flags;
  return record(event, stream, false);
}

EXPORT CUresult cuEventRecordWithFlags_ptsz(CUevent event, CUstream stream, unsigned int flags) {
  (void)flags;
  return record(event, stream, true);
}

EXPORT CUresult cuEventQuery(CUevent event) {
  CUresult result = find(event);
  if (result != CUDA_SUCCESS) return result;
  if (event->capture != NULL) return CUDA_ERROR_CAPTURED_EVENT;
  return event->recorded == 0 ? CUDA_SUCCESS : query(event->stream, event->sequence);
}

EXPORT CUresult cuEventSynchronize(CUevent event) {
  CUresult result = find(event);
  if (result != CUDA_SUCCESS) return result;
  if (event->capture != NULL) return CUDA_ERROR_CAPTURED_EVENT;
  return event->recorded == 0 ? CUDA_SUCCESS : wait_for(event->stream, event->sequence);
}

EXPORT CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end) {
  CUresult result = find(start);
  if (result == CUDA_SUCCESS) result = find(end);
  if (result != CUDA_SUCCESS) return result;
  if (milliseconds == NULL) return CUDA_ERROR_INVALID_VALUE;
  if (start->recorded == 0 || end->recorded == 0 || ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) != 0)
    return CUDA_ERROR_INVALID_HANDLE;
  if ((result = cuEventQuery(start)) != CUDA_SUCCESS || (result = cuEventQuery(end)) != CUDA_SUCCESS) return result;
  const struct gwsim_event_state *states = gwsim_state->channel->events;
  uint64_t from = __atomic_load_n(&states[start->slot].time_ns, __ATOMIC_SEQ_CST);
  uint64_t to = __atomic_load_n(&states[end->slot].time_ns, __ATOMIC_SEQ_CST);
  *milliseconds = (float)((double)(int64_t)(to - from) / 1e6);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuEventElapsedTime_v1(float *milliseconds, CUevent start, CUevent end) __asm__("cuEventElapsedTime");
CUresult cuEventElapsedTime_v1(float *milliseconds, CUevent start, CUevent end) {
  return cuEventElapsedTime_v2(milliseconds, start, end);
}

static CUresult wait_event(CUstream given, CUevent event, bool per_thread) {
  CUstream stream;
  CUresult result = find(event);
  if (result == CUDA_SUCCESS) result = resolve_stream(given, per_thread, &stream);
  if (result != CUDA_SUCCESS) return result;
  if (event->capture != NULL) {
    // The stream joins the capture.
    stream->capture = event->capture;
    return CUDA_SUCCESS;
  }
  // What is over is not waited for: after a restore the daemon does not know of it.
  if (__atomic_load_n(&gwsim_state->channel->events[event->slot].generation, __ATOMIC_ACQUIRE) >= event->recorded)
    return CUDA_SUCCESS;
  struct gwsim_entry entry = {.type = GWSIM_WAIT};
  entry.event.slot = event->slot;
  entry.event.generation = event->recorded;
  uint64_t sequence;
  return submit(stream, &entry, &sequence);
}

EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
  (void)flags;
  return wait_event(stream, event, false);
}

EXPORT CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned int flags) {
  (void)flags;
  return wait_event(stream, event, true);
}
