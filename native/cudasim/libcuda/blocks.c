// Rows of device memory, by their addresses: where it lies is the library's affair, how much there is the daemon's.
#include "state.h"

#include <string.h>
#include <sys/mman.h>

enum { GRANULE_BYTES = 512 }; // As the daemon counts.

static uint64_t round_up(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }

// The first block that ends behind `offset`.
static uint32_t find_block(uint64_t offset) {
  uint32_t low = 0, high = gwsim_state->block_count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    const struct block *block = &gwsim_state->blocks[middle];
    if (block->offset + round_up(block->bytes, GRANULE_BYTES) <= offset) low = middle + 1;
    else high = middle;
  }
  return low;
}

struct block *block_with(CUdeviceptr pointer, uint64_t bytes) {
  if (pointer < DEVICE_BASE) return NULL;
  uint64_t offset = pointer - DEVICE_BASE;
  uint32_t at = find_block(offset);
  if (at == gwsim_state->block_count) return NULL;
  struct block *block = &gwsim_state->blocks[at];
  if (offset < block->offset || bytes > block->bytes || offset - block->offset > block->bytes - bytes) return NULL;
  return block;
}

struct block *add_block(uint64_t bytes, uint64_t alignment, struct CUctx_st *context, enum block_kind kind) {
  uint32_t count = gwsim_state->block_count, at = 0;
  if (count == MAX_BLOCKS) return NULL;
  uint64_t offset = 0, size = round_up(bytes, GRANULE_BYTES);
  for (; at < count; at++) {
    const struct block *next = &gwsim_state->blocks[at];
    if (next->offset >= offset && next->offset - offset >= size) break;
    offset = round_up(next->offset + round_up(next->bytes, GRANULE_BYTES), alignment);
  }
  if (offset > DEVICE_WINDOW || DEVICE_WINDOW - offset < size) return NULL;
  struct block *row = &gwsim_state->blocks[at];
  memmove(row + 1, row, (count - at) * sizeof *row);
  *row = (struct block){.offset = offset, .bytes = bytes, .context = context, .kind = kind};
  gwsim_state->block_count++;
  return row;
}

// Other mappings of it are removed, so that the next owner of these addresses has them alone.
void remove_block(struct block *block) {
  switch (block->kind) {
  case MANAGED_BLOCK:
    munmap((void *)(DEVICE_BASE + block->offset), round_up(block->bytes, page_bytes()));
    break;
  case IMPORTED_BLOCK:
    back_empty(block->offset, block->bytes);
    break;
  case RESERVED_BLOCK:
    unmap_all(block);
    break;
  case PLAIN_BLOCK:
  case PHYSICAL_BLOCK:
    break;
  }
  if (block->exported != 0) withdraw(block);
  size_t at = (size_t)(block - gwsim_state->blocks);
  memmove(block, block + 1, (--gwsim_state->block_count - at) * sizeof *block);
}

CUresult free_block(struct block *block) {
  bool charged = block->kind != RESERVED_BLOCK && block->kind != IMPORTED_BLOCK;
  CUresult result = charged ? discharge(block->context, block->bytes) : CUDA_SUCCESS;
  if (result == CUDA_SUCCESS) remove_block(block);
  return result;
}

// Their memory goes with the context.
void free_blocks_of(struct CUctx_st *context) {
  for (uint32_t i = gwsim_state->block_count; i-- > 0;)
    if (gwsim_state->blocks[i].context == context) remove_block(&gwsim_state->blocks[i]);
}
