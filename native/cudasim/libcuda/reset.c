// What real drivers have no call for: taking back all that was made since a mark, for a process that serves one function
// after the other. Device memory that is taken back reads as zeros from then on.
#define _GNU_SOURCE
#include "state.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/** For what still runs on the device. */
#define LONGEST_WAIT_NS 1000000000ULL

// What is in use now is kept. Pieces that are free are not used again, so that all above `heap_used` is of later rows.
EXPORT void gpuwhisk_sim_mark(void) {
  struct state *state = gwsim_state;
  if (state == NULL) return;
  lock_state();
  struct mark *mark = &state->mark;
  memset(mark, 0, sizeof *mark);
  for (int i = 0; i < MAX_CONTEXTS; i++) {
    mark->contexts[i] = state->contexts[i].kind == CONTEXT;
    mark->uses[i] = state->contexts[i].uses;
  }
  for (int i = 0; i < MAX_MODULES; i++) mark->modules[i] = state->modules[i].kind == MODULE;
  for (int i = 0; i < GWSIM_STREAMS; i++) mark->streams[i] = state->streams[i].kind == STREAM;
  for (int i = 0; i < GWSIM_EVENT_SLOTS; i++) mark->events[i] = state->events[i].kind == EVENT;
  for (uint32_t i = 0; i < state->block_count; i++) state->blocks[i].kept = true;
  mark->blocks = state->block_count;
  memset(state->free_lists, 0, sizeof state->free_lists);
  mark->heap_used = state->heap_used;
  mark->is_set = true;
  unlock_state();
}

// Pages that lie in a range wholly are given back to the system, and read as zeros.
static bool clear(char *from, uint64_t bytes) {
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), start = (uint64_t)from, end = start + bytes;
  uint64_t first = (start + page - 1) / page * page, last = end / page * page;
  if (first >= last) {
    memset(from, 0, bytes);
    return true;
  }
  memset(from, 0, first - start);
  memset((char *)last, 0, end - last);
  return madvise((void *)first, last - first, MADV_REMOVE) == 0;
}

static CUresult settle_streams(void) {
  struct state *state = gwsim_state;
  lock_state();
  for (int i = 0; i < GWSIM_STREAMS; i++)
    if (state->streams[i].kind == STREAM) end_capture_of(&state->streams[i]);
  unlock_state();
  uint64_t deadline_ns = clock_ns() + LONGEST_WAIT_NS;
  for (int i = 0; i < GWSIM_STREAMS; i++) {
    const struct CUstream_st *stream = &state->streams[i];
    if (stream->kind != STREAM || stream->submitted == 0) continue;
    CUresult result = wait_until(stream->slot, stream->submitted, deadline_ns);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

static void forget_rows(void) {
  struct state *state = gwsim_state;
  const struct mark *mark = &state->mark;
  for (int i = 0; i < MAX_CONTEXTS; i++) {
    struct CUctx_st *context = &state->contexts[i];
    if (context->kind != CONTEXT) continue;
    if (!mark->contexts[i]) destroy_context(context);
    for (int slot = 0; slot < THREAD_STREAMS; slot++) {
      CUstream stream = context->thread_streams[slot].stream;
      if (stream != NULL && !mark->streams[stream->slot]) memset(&context->thread_streams[slot], 0, sizeof context->thread_streams[slot]);
    }
  }
  for (int i = 0; i < MAX_MODULES; i++)
    if (!mark->modules[i] && state->modules[i].kind == MODULE) unload_module(&state->modules[i]);
  for (int i = 0; i < GWSIM_STREAMS; i++)
    if (!mark->streams[i] && state->streams[i].kind == STREAM) forget_stream(&state->streams[i]);
  for (int i = 0; i < GWSIM_EVENT_SLOTS; i++)
    if (!mark->events[i] && state->events[i].kind == EVENT) state->events[i].kind = FREE_ROW;
}

static CUresult free_later_blocks(void) {
  struct state *state = gwsim_state;
  for (uint32_t i = state->block_count; i-- > 0;) {
    struct block *block = &state->blocks[i];
    if (block->kept) continue;
    CUresult result = free_block(block);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

// What lies between the blocks that are kept: also what a function freed itself.
static bool clear_device(void) {
  const struct state *state = gwsim_state;
  uint64_t offset = 0;
  for (uint32_t i = 0; i <= state->block_count; i++) {
    uint64_t end = i < state->block_count ? state->blocks[i].offset : DEVICE_WINDOW;
    if (!clear(device_memory() + offset, end - offset)) return false;
    if (i < state->block_count) offset = end + state->blocks[i].bytes;
  }
  return true;
}

// Whether all that was there at the mark still is.
static bool is_whole(void) {
  const struct state *state = gwsim_state;
  const struct mark *mark = &state->mark;
  for (int i = 0; i < MAX_CONTEXTS; i++) {
    if (!mark->contexts[i]) continue;
    if (state->contexts[i].kind != CONTEXT) return false;
    if (state->contexts[i].uses < mark->uses[i]) return false;
  }
  for (int i = 0; i < MAX_MODULES; i++)
    if (mark->modules[i] && state->modules[i].kind != MODULE) return false;
  for (int i = 0; i < GWSIM_STREAMS; i++)
    if (mark->streams[i] && state->streams[i].kind != STREAM) return false;
  for (int i = 0; i < GWSIM_EVENT_SLOTS; i++)
    if (mark->events[i] && state->events[i].kind != EVENT) return false;
  return state->block_count == mark->blocks;
}

/**
 * Waits for what runs, then takes back what was made since the mark. Returns a CUresult: the sticky error of a context
 * that has one, 600 (not ready) if something runs on for more than a second, 709 (context is destroyed) if something from
 * before the mark is gone, 1 (invalid value) without a mark.
 */
EXPORT int gpuwhisk_sim_reset(void) {
  CUresult result = check_ready();
  if (result != CUDA_SUCCESS) return result;
  struct state *state = gwsim_state;
  if (!state->mark.is_set) return CUDA_ERROR_INVALID_VALUE;
  result = settle_streams();
  if (result != CUDA_SUCCESS) return result;
  lock_state();
  forget_rows();
  result = free_later_blocks();
  if (result == CUDA_SUCCESS && !is_whole()) result = CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (result == CUDA_SUCCESS) {
    for (int i = 0; i < MAX_CONTEXTS; i++)
      if (state->mark.contexts[i]) state->contexts[i].uses = state->mark.uses[i];
    uint64_t later = state->heap_used - state->mark.heap_used;
    if (!clear(heap_base() + state->mark.heap_used, later) || !clear_device()) result = CUDA_ERROR_UNKNOWN;
    memset(state->free_lists, 0, sizeof state->free_lists);
    state->heap_used = state->mark.heap_used;
  }
  unlock_state();
  return result;
}
