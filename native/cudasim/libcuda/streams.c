#define _GNU_SOURCE
#include "state.h"

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// After so long without a word it is seen whether the daemon still lives.
enum { CHECK_MS = 20 };

// A slot whose numbers go on from the stream that had it before: what that left runs first.
CUstream make_stream(struct CUctx_st *context, uint32_t order) {
  for (uint32_t i = 0; i < GWSIM_STREAMS; i++) {
    CUstream stream = &gwsim_state->streams[i];
    if (stream->kind == STREAM) continue;
    stream->kind = STREAM;
    stream->context = context;
    stream->slot = i;
    stream->order = order;
    stream->capture = NULL;
    return stream;
  }
  return NULL;
}

void forget_stream(CUstream stream) {
  end_capture_of(stream);
  stream->kind = FREE_ROW;
}

// Under the lock. Threads share one where there are too many: that only keeps more order than was asked for.
static CUstream stream_of_thread(struct CUctx_st *context) {
  int thread = thread_id(), at = thread % THREAD_STREAMS;
  for (int i = 0; i < THREAD_STREAMS; i++) {
    int slot = (at + i) % THREAD_STREAMS;
    if (context->thread_streams[slot].thread == thread) return context->thread_streams[slot].stream;
    if (context->thread_streams[slot].thread != 0) continue;
    CUstream stream = make_stream(context, GWSIM_BLOCKING);
    if (stream == NULL) break;
    context->thread_streams[slot].thread = thread;
    return context->thread_streams[slot].stream = stream;
  }
  return context->thread_streams[at].stream;
}

CUresult resolve_stream(CUstream given, bool per_thread, CUstream *stream) {
  struct CUctx_st *context;
  CUresult result = check_context(&context);
  if (result != CUDA_SUCCESS) return result;
  if (given == CU_STREAM_PER_THREAD || (given == NULL && per_thread)) {
    lock_state();
    *stream = stream_of_thread(context);
    unlock_state();
    return *stream == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
  }
  *stream = given == NULL || given == CU_STREAM_LEGACY ? context->legacy : given;
  return *stream != NULL && is_stream(*stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static bool ring_is_full(const struct gwsim_channel *channel) {
  return channel->head - __atomic_load_n(&channel->tail, __ATOMIC_ACQUIRE) >= GWSIM_RING_ENTRIES;
}

static CUresult check_alive(void) {
  if (gwsim_is_gone(&gwsim_state->connection)) gwsim_state->gone = true;
  return check_ready();
}

static long sleep_on(uint32_t *word, uint32_t value) {
  struct timespec limit = {0, CHECK_MS * 1000000L};
  return syscall(SYS_futex, word, FUTEX_WAIT, value, &limit, NULL, 0);
}

static CUresult wait_for_room(struct gwsim_channel *channel) {
  while (ring_is_full(channel)) {
    uint32_t wakes = __atomic_load_n(&channel->space_wakes, __ATOMIC_SEQ_CST);
    __atomic_store_n(&channel->space_wanted, 1, __ATOMIC_SEQ_CST);
    if (!ring_is_full(channel)) break;
    sleep_on(&channel->space_wakes, wakes);
    CUresult result = check_alive();
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

CUresult submit(CUstream stream, struct gwsim_entry *entry, uint64_t *sequence) {
  struct gwsim_channel *channel = gwsim_state->channel;
  lock_state();
  CUresult result = wait_for_room(channel);
  if (result != CUDA_SUCCESS) {
    unlock_state();
    return result;
  }
  entry->context = stream->context->id;
  entry->stream = stream->slot;
  entry->flags |= stream->order;
  entry->sequence = *sequence = ++stream->submitted;
  entry->stamp_ns = clock_ns();
  channel->ring[channel->head % GWSIM_RING_ENTRIES] = *entry;
  __atomic_store_n(&channel->head, channel->head + 1, __ATOMIC_SEQ_CST);
  bool asleep = __atomic_exchange_n(&channel->asleep, 0, __ATOMIC_SEQ_CST) != 0;
  unlock_state();
  if (asleep) gwsim_notify(&gwsim_state->connection, GWSIM_RING);
  return CUDA_SUCCESS;
}

static bool is_over(const struct gwsim_stream_state *state, uint64_t sequence) {
  return __atomic_load_n(&state->completed, __ATOMIC_SEQ_CST) >= sequence;
}

static void await(struct gwsim_stream_state *state, uint64_t sequence) {
  uint64_t awaited = __atomic_load_n(&state->awaited, __ATOMIC_SEQ_CST);
  while (awaited < sequence &&
         !__atomic_compare_exchange_n(&state->awaited, &awaited, sequence, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
    continue;
}

CUresult wait_for(uint32_t slot, uint64_t sequence) { return wait_until(slot, sequence, UINT64_MAX); }

CUresult wait_until(uint32_t slot, uint64_t sequence, uint64_t deadline_ns) {
  struct gwsim_stream_state *state = &gwsim_state->channel->streams[slot];
  for (bool told = false; !is_over(state, sequence);) {
    uint32_t wakes = __atomic_load_n(&state->wakes, __ATOMIC_SEQ_CST);
    await(state, sequence);
    CUresult result = told ? check_alive() : check_ready();
    if (result != CUDA_SUCCESS) return result;
    if (!told) gwsim_notify(&gwsim_state->connection, GWSIM_RING);
    told = true;
    if (is_over(state, sequence)) break;
    if (clock_ns() >= deadline_ns) return CUDA_ERROR_NOT_READY;
    sleep_on(&state->wakes, wakes);
  }
  return check_ready();
}

CUresult query(uint32_t slot, uint64_t sequence) {
  const struct gwsim_stream_state *state = &gwsim_state->channel->streams[slot];
  if (is_over(state, sequence)) return CUDA_SUCCESS;
  lock_state();
  CUresult result = call_daemon(GWSIM_ADVANCE, NULL, 0, NULL, 0);
  unlock_state();
  if (result == CUDA_SUCCESS) result = check_ready();
  if (result != CUDA_SUCCESS) return result;
  return is_over(state, sequence) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult wait_for_context(struct CUctx_st *context) {
  for (uint32_t i = 0; i < GWSIM_STREAMS; i++) {
    CUstream stream = &gwsim_state->streams[i];
    if (stream->kind != STREAM || stream->context != context || stream->submitted == 0) continue;
    if (stream->capture != NULL) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    CUresult result = wait_for(i, stream->submitted);
    if (result != CUDA_SUCCESS) return result;
  }
  return check_ready();
}

CUresult check_not_capturing(struct CUctx_st *context) {
  for (uint32_t i = 0; i < GWSIM_STREAMS; i++) {
    CUstream stream = &gwsim_state->streams[i];
    if (stream->kind == STREAM && stream->context == context && stream->capture != NULL &&
        stream->order == GWSIM_BLOCKING)
      return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned int flags) {
  struct CUctx_st *context;
  CUresult result = check_context(&context);
  if (result != CUDA_SUCCESS) return result;
  if (stream == NULL || flags > CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  lock_state();
  *stream = make_stream(context, flags == CU_STREAM_NON_BLOCKING ? 0 : GWSIM_BLOCKING);
  unlock_state();
  return *stream == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

EXPORT CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority) {
  (void)priority; // There is one.
  return cuStreamCreate(stream, flags);
}

static CUresult find_own(CUstream stream) {
  if (gwsim_state == NULL || gwsim_state->pid != getpid()) return CUDA_ERROR_NOT_INITIALIZED;
  return is_stream(stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult cuStreamDestroy_v2(CUstream stream) {
  CUresult result = find_own(stream);
  if (result != CUDA_SUCCESS) return result;
  lock_state();
  forget_stream(stream);
  unlock_state();
  return CUDA_SUCCESS;
}

static CUresult synchronize(CUstream given, bool per_thread) {
  CUstream stream;
  CUresult result = resolve_stream(given, per_thread, &stream);
  if (result != CUDA_SUCCESS) return result;
  if (stream->capture != NULL) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return stream->submitted == 0 ? CUDA_SUCCESS : wait_for(stream->slot, stream->submitted);
}

EXPORT CUresult cuStreamSynchronize(CUstream stream) { return synchronize(stream, false); }
EXPORT CUresult cuStreamSynchronize_ptsz(CUstream stream) { return synchronize(stream, true); }

static CUresult query_stream(CUstream given, bool per_thread) {
  CUstream stream;
  CUresult result = resolve_stream(given, per_thread, &stream);
  if (result != CUDA_SUCCESS) return result;
  if (stream->capture != NULL) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return query(stream->slot, stream->submitted);
}

EXPORT CUresult cuStreamQuery(CUstream stream) { return query_stream(stream, false); }
EXPORT CUresult cuStreamQuery_ptsz(CUstream stream) { return query_stream(stream, true); }

EXPORT CUresult cuStreamGetFlags(CUstream given, unsigned int *flags) {
  CUstream stream;
  CUresult result = resolve_stream(given, false, &stream);
  if (result == CUDA_SUCCESS) *flags = stream->order == 0 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT;
  return result;
}

EXPORT CUresult cuStreamGetPriority(CUstream given, int *priority) {
  CUstream stream;
  CUresult result = resolve_stream(given, false, &stream);
  if (result == CUDA_SUCCESS) *priority = 0;
  return result;
}

EXPORT CUresult cuStreamGetCtx(CUstream given, CUcontext *context) {
  CUstream stream;
  CUresult result = resolve_stream(given, false, &stream);
  if (result == CUDA_SUCCESS) *context = stream->context;
  return result;
}
