// Device memory: where it lies is the library's affair, how much there is the daemon's.
#include "state.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GRANULE_BYTES = 512 }; // As the daemon counts.

static uint64_t round_up(uint64_t bytes) { return (bytes + GRANULE_BYTES - 1) / GRANULE_BYTES * GRANULE_BYTES; }

// The first block that ends behind `offset`.
static uint32_t find_block(uint64_t offset) {
  uint32_t low = 0, high = gwsim_state->block_count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    const struct block *block = &gwsim_state->blocks[middle];
    if (block->offset + round_up(block->bytes) <= offset) low = middle + 1;
    else high = middle;
  }
  return low;
}

static struct block *block_with(CUdeviceptr pointer, uint64_t bytes) {
  if (pointer < DEVICE_BASE) return NULL;
  uint64_t offset = pointer - DEVICE_BASE;
  uint32_t at = find_block(offset);
  if (at == gwsim_state->block_count) return NULL;
  struct block *block = &gwsim_state->blocks[at];
  if (offset < block->offset || bytes > block->bytes || offset - block->offset > block->bytes - bytes) return NULL;
  return block;
}

void *host_address(CUdeviceptr pointer, uint64_t bytes) {
  lock_state();
  const struct block *block = block_with(pointer, bytes);
  unlock_state();
  return block == NULL ? NULL : device_memory() + (pointer - DEVICE_BASE);
}

// The first gap that is large enough.
static bool place(uint64_t bytes, struct CUctx_st *context, CUdeviceptr *pointer) {
  uint32_t count = gwsim_state->block_count, at = 0;
  if (count == MAX_BLOCKS) return false;
  uint64_t offset = 0, size = round_up(bytes);
  for (; at < count; at++) {
    const struct block *next = &gwsim_state->blocks[at];
    if (next->offset - offset >= size) break;
    offset = next->offset + round_up(next->bytes);
  }
  if (DEVICE_WINDOW - offset < size) return false;
  struct block *row = &gwsim_state->blocks[at];
  memmove(row + 1, row, (count - at) * sizeof *row);
  *row = (struct block){offset, bytes, context, false};
  gwsim_state->block_count++;
  *pointer = DEVICE_BASE + offset;
  return true;
}

static void remove_block(struct block *block) {
  size_t at = (size_t)(block - gwsim_state->blocks);
  memmove(block, block + 1, (--gwsim_state->block_count - at) * sizeof *block);
}

void free_blocks_of(struct CUctx_st *context) {
  for (uint32_t i = gwsim_state->block_count; i-- > 0;)
    if (gwsim_state->blocks[i].context == context) remove_block(&gwsim_state->blocks[i]);
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
  struct CUctx_st *context;
  CUresult result = check_context(&context);
  if (result != CUDA_SUCCESS) return result;
  if (pointer == NULL || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  struct gwsim_memory request = {context->id, bytes};
  lock_state();
  result = call_daemon(GWSIM_ALLOCATE, &request, sizeof request, NULL, 0);
  if (result == CUDA_SUCCESS && !place(bytes, context, pointer)) {
    call_daemon(GWSIM_FREE, &request, sizeof request, NULL, 0);
    result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  unlock_state();
  return result;
}

EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height,
                                   unsigned int element) {
  if (pitch == NULL || (element != 4 && element != 8 && element != 16) || width == 0 || height == 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (width > DEVICE_WINDOW || height > DEVICE_WINDOW / round_up(width)) return CUDA_ERROR_OUT_OF_MEMORY;
  *pitch = round_up(width);
  return cuMemAlloc_v2(pointer, *pitch * height);
}

CUresult free_block(struct block *block) {
  struct gwsim_memory request = {block->context->id, block->bytes};
  CUresult result = call_daemon(GWSIM_FREE, &request, sizeof request, NULL, 0);
  if (result == CUDA_SUCCESS) remove_block(block);
  return result;
}

static CUresult give_back(CUdeviceptr pointer) {
  CUresult result = CUDA_ERROR_INVALID_VALUE;
  lock_state();
  struct block *block = block_with(pointer, 0);
  if (block != NULL && DEVICE_BASE + block->offset == pointer) result = free_block(block);
  unlock_state();
  return result;
}

// What still uses the memory is over first.
EXPORT CUresult cuMemFree_v2(CUdeviceptr pointer) {
  struct CUctx_st *context;
  CUresult result = check_context(&context);
  if (result != CUDA_SUCCESS) return result;
  if (pointer == 0) return CUDA_SUCCESS;
  result = wait_for_context(context);
  return result == CUDA_SUCCESS ? give_back(pointer) : result;
}

EXPORT CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes) {
  struct CUctx_st *context;
  CUresult result = check_context(&context);
  if (result != CUDA_SUCCESS) return result;
  struct gwsim_context request = {.id = context->id};
  struct gwsim_memory_info answer;
  lock_state();
  result = call_daemon(GWSIM_MEMORY_INFO, &request, sizeof request, &answer, sizeof answer);
  unlock_state();
  if (result != CUDA_SUCCESS) return result;
  if (free_bytes != NULL) *free_bytes = answer.free_bytes;
  if (total_bytes != NULL) *total_bytes = answer.total_bytes;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr pointer) {
  struct CUctx_st *context;
  CUresult result = check_context(&context);
  if (result != CUDA_SUCCESS) return result;
  lock_state();
  const struct block *block = block_with(pointer, 0);
  if (block != NULL && base != NULL) *base = DEVICE_BASE + block->offset;
  if (block != NULL && bytes != NULL) *bytes = block->bytes;
  unlock_state();
  return block == NULL ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

EXPORT CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr pointer) {
  struct CUctx_st *context;
  CUresult result = check_context(&context);
  if (result != CUDA_SUCCESS) return result;
  lock_state();
  const struct block *block = block_with(pointer, 0);
  CUcontext owner = block == NULL ? NULL : block->context;
  unlock_state();
  if (owner == NULL) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
  case CU_POINTER_ATTRIBUTE_CONTEXT:
    *(CUcontext *)value = owner;
    return CUDA_SUCCESS;
  case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    *(unsigned *)value = CU_MEMORYTYPE_DEVICE;
    return CUDA_SUCCESS;
  case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    *(CUdeviceptr *)value = pointer;
    return CUDA_SUCCESS;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
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
  return pool == NULL ? CUDA_ERROR_INVALID_VALUE : allocate_async(pointer, bytes, stream, false);
}
EXPORT CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool, CUstream stream) {
  return pool == NULL ? CUDA_ERROR_INVALID_VALUE : allocate_async(pointer, bytes, stream, true);
}
EXPORT CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) { return free_async(pointer, stream, false); }
EXPORT CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream) { return free_async(pointer, stream, true); }

EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device) {
  CUresult result = check_ready();
  if (result == CUDA_ERROR_NOT_INITIALIZED) return result;
  if (pool == NULL || device < 0 || device >= gwsim_state->device_count) return CUDA_ERROR_INVALID_DEVICE;
  *pool = (CUmemoryPool)&gwsim_state->devices[device];
  return CUDA_SUCCESS;
}

// Host memory is as good as pinned: the stand-in copies it by hand.
EXPORT CUresult cuMemHostAlloc(void **pointer, size_t bytes, unsigned int flags) {
  (void)flags;
  struct CUctx_st *context;
  CUresult result = check_context(&context);
  if (result != CUDA_SUCCESS) return result;
  if (pointer == NULL || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  return posix_memalign(pointer, 4096, bytes) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuMemAllocHost_v2(void **pointer, size_t bytes) { return cuMemHostAlloc(pointer, bytes, 0); }

EXPORT CUresult cuMemFreeHost(void *pointer) {
  free(pointer);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned int flags) {
  (void)flags;
  struct CUctx_st *context;
  CUresult result = check_context(&context);
  if (result != CUDA_SUCCESS) return result;
  return pointer == NULL || bytes == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostUnregister(void *pointer) { return pointer == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }
