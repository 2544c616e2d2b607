// Addresses and memory apart: physical memory is made, and mapped into addresses that were reserved.
#include "state.h"

#include <string.h>

enum { GRANULARITY_BYTES = 2 << 20 };

static bool is_whole(uint64_t bytes) { return bytes > 0 && bytes % GRANULARITY_BYTES == 0; }

// A handle is the physical block's offset, with a mark.
static const CUmemGenericAllocationHandle handle_mark = 1ULL << 60;

static struct block *physical_of(CUmemGenericAllocationHandle handle) {
  if ((handle & handle_mark) == 0) return NULL;
  struct block *block = block_with(DEVICE_BASE + (handle & ~handle_mark), 0);
  return block != NULL && block->kind == PHYSICAL_BLOCK && block->offset == (handle & ~handle_mark) ? block : NULL;
}

static CUresult free_if_unused(struct block *physical) {
  return physical->released && physical->mappings == 0 ? free_block(physical) : CUDA_SUCCESS;
}

static const struct mapping *mapping_at(uint64_t offset) {
  for (int i = 0; i < MAX_MAPPINGS; i++) {
    const struct mapping *mapping = &gwsim_state->mappings[i];
    if (mapping->bytes > 0 && offset >= mapping->offset && offset - mapping->offset < mapping->bytes) return mapping;
  }
  return NULL;
}

bool is_mapped(uint64_t offset, uint64_t bytes) {
  uint64_t end = offset + bytes;
  do {
    const struct mapping *mapping = mapping_at(offset);
    if (mapping == NULL || !mapping->accessible) return false;
    offset = mapping->offset + mapping->bytes;
  } while (offset < end);
  return true;
}

static void unmap(struct mapping *mapping) {
  struct block *physical = block_with(DEVICE_BASE + mapping->physical, 0);
  back_empty(mapping->offset, mapping->bytes);
  mapping->bytes = 0;
  if (physical == NULL) return; // Its context is gone.
  physical->mappings--;
  free_if_unused(physical);
}

static bool lies_in(const struct mapping *mapping, uint64_t offset, uint64_t bytes) {
  return mapping->bytes > 0 && mapping->offset >= offset && mapping->offset + mapping->bytes <= offset + bytes;
}

// Its physical memory is another block's to free.
void unmap_all(struct block *block) {
  for (int i = 0; i < MAX_MAPPINGS; i++) {
    struct mapping *mapping = &gwsim_state->mappings[i];
    if (!lies_in(mapping, block->offset, block->bytes)) continue;
    struct block *physical = block_with(DEVICE_BASE + mapping->physical, 0);
    if (physical != NULL) physical->mappings--;
    back_empty(mapping->offset, mapping->bytes);
    mapping->bytes = 0;
  }
}

static CUresult check_property(const CUmemAllocationProp *property) {
  CUresult result = check_ready();
  if (result != CUDA_SUCCESS) return result;
  if (property == NULL || property->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
      property->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    return CUDA_ERROR_INVALID_VALUE;
  return property->location.id < 0 || property->location.id >= gwsim_state->device_count ? CUDA_ERROR_INVALID_DEVICE
                                                                                         : CUDA_SUCCESS;
}

EXPORT CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *property,
                                              CUmemAllocationGranularity_flags option) {
  (void)option;
  CUresult result = check_property(property);
  if (result != CUDA_SUCCESS) return result;
  if (granularity == NULL) return CUDA_ERROR_INVALID_VALUE;
  *granularity = GRANULARITY_BYTES;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAddressReserve(CUdeviceptr *pointer, size_t bytes, size_t alignment, CUdeviceptr wanted,
                                    unsigned long long flags) {
  (void)wanted; // A hint, which is not followed.
  struct CUctx_st *context;
  CUresult result = check_context(&context);
  if (result != CUDA_SUCCESS) return result;
  if (pointer == NULL || !is_whole(bytes) || (alignment & (alignment - 1)) != 0 || flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (bytes > DEVICE_WINDOW) return CUDA_ERROR_OUT_OF_MEMORY;
  lock_state();
  uint64_t aligned = alignment < GRANULARITY_BYTES ? GRANULARITY_BYTES : alignment;
  const struct block *block = add_block(bytes, aligned, memory_owner(context), RESERVED_BLOCK);
  if (block != NULL) *pointer = DEVICE_BASE + block->offset;
  unlock_state();
  return block == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

static bool has_mappings(const struct block *block) {
  for (int i = 0; i < MAX_MAPPINGS; i++)
    if (lies_in(&gwsim_state->mappings[i], block->offset, block->bytes)) return true;
  return false;
}

EXPORT CUresult cuMemAddressFree(CUdeviceptr pointer, size_t bytes) {
  CUresult result = check_ready();
  if (result != CUDA_SUCCESS) return result;
  lock_state();
  struct block *block = block_with(pointer, bytes);
  bool fits = block != NULL && block->kind == RESERVED_BLOCK && DEVICE_BASE + block->offset == pointer &&
              block->bytes == bytes && !has_mappings(block);
  if (fits) remove_block(block);
  unlock_state();
  return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *property,
                            unsigned long long flags) {
  struct CUctx_st *context;
  CUresult result = check_property(property);
  if (result == CUDA_SUCCESS) result = check_context(&context);
  if (result != CUDA_SUCCESS) return result;
  if (handle == NULL || !is_whole(bytes) || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (property->location.id != context->device) return CUDA_ERROR_INVALID_DEVICE;
  CUdeviceptr made;
  result = allocate(&made, bytes, GRANULARITY_BYTES, context, PHYSICAL_BLOCK);
  if (result == CUDA_SUCCESS) *handle = handle_mark | (made - DEVICE_BASE);
  return result;
}

EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  CUresult result = check_ready();
  if (result != CUDA_SUCCESS) return result;
  lock_state();
  struct block *physical = physical_of(handle);
  if (physical == NULL || physical->released) {
    result = CUDA_ERROR_INVALID_VALUE;
  } else {
    physical->released = true;
    result = free_if_unused(physical);
  }
  unlock_state();
  return result;
}

static struct mapping *free_row(void) {
  for (int i = 0; i < MAX_MAPPINGS; i++)
    if (gwsim_state->mappings[i].bytes == 0) return &gwsim_state->mappings[i];
  return NULL;
}

static bool is_free(uint64_t offset, uint64_t bytes) {
  for (int i = 0; i < MAX_MAPPINGS; i++) {
    const struct mapping *mapping = &gwsim_state->mappings[i];
    if (mapping->bytes > 0 && mapping->offset < offset + bytes && offset < mapping->offset + mapping->bytes) return false;
  }
  return true;
}

static CUresult map(CUdeviceptr pointer, uint64_t bytes, CUmemGenericAllocationHandle handle) {
  const struct block *reserved = block_with(pointer, bytes);
  struct block *physical = physical_of(handle);
  uint64_t offset = pointer - DEVICE_BASE;
  if (reserved == NULL || reserved->kind != RESERVED_BLOCK || physical == NULL || physical->released ||
      physical->bytes != bytes || !is_free(offset, bytes))
    return CUDA_ERROR_INVALID_VALUE;
  struct mapping *row = free_row();
  if (row == NULL || !show_at(physical->offset, bytes, device_memory() + offset)) return CUDA_ERROR_OUT_OF_MEMORY;
  *row = (struct mapping){.offset = offset, .bytes = bytes, .physical = physical->offset};
  physical->mappings++;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemMap(CUdeviceptr pointer, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                         unsigned long long flags) {
  CUresult result = check_ready();
  if (result != CUDA_SUCCESS) return result;
  if (!is_whole(bytes) || pointer % GRANULARITY_BYTES != 0 || offset != 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  lock_state();
  result = map(pointer, bytes, handle);
  unlock_state();
  return result;
}

// What still uses the memory is over first.
EXPORT CUresult cuMemUnmap(CUdeviceptr pointer, size_t bytes) {
  struct CUctx_st *context;
  CUresult result = check_context(&context);
  if (result == CUDA_SUCCESS) result = wait_for_context(context);
  if (result != CUDA_SUCCESS) return result;
  result = CUDA_ERROR_INVALID_VALUE;
  lock_state();
  for (int i = 0; i < MAX_MAPPINGS; i++) {
    if (!lies_in(&gwsim_state->mappings[i], pointer - DEVICE_BASE, bytes)) continue;
    unmap(&gwsim_state->mappings[i]);
    result = CUDA_SUCCESS;
  }
  unlock_state();
  return result;
}

EXPORT CUresult cuMemSetAccess(CUdeviceptr pointer, size_t bytes, const CUmemAccessDesc *descriptors, size_t count) {
  CUresult result = check_ready();
  if (result != CUDA_SUCCESS) return result;
  if (descriptors == NULL || count != 1) return CUDA_ERROR_INVALID_VALUE;
  result = CUDA_ERROR_INVALID_VALUE;
  lock_state();
  for (int i = 0; i < MAX_MAPPINGS; i++) {
    struct mapping *mapping = &gwsim_state->mappings[i];
    if (!lies_in(mapping, pointer - DEVICE_BASE, bytes)) continue;
    mapping->accessible = descriptors->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    result = CUDA_SUCCESS;
  }
  unlock_state();
  return result;
}
