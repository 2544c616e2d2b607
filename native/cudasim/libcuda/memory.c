// Device memory that is allocated and freed at once.
#include "state.h"

enum { PITCH_BYTES = 512 };

static uint64_t round_up(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }

void *host_address(CUdeviceptr pointer, uint64_t bytes) {
  lock_state();
  const struct block *block = block_with(pointer, bytes);
  bool sound = block != NULL && block->kind != PHYSICAL_BLOCK &&
               (block->kind != RESERVED_BLOCK || is_mapped(pointer - DEVICE_BASE, bytes));
  unlock_state();
  return sound ? device_memory() + (pointer - DEVICE_BASE) : NULL;
}

CUresult charge(struct CUctx_st *context, uint64_t bytes) {
  struct gwsim_memory request = {memory_owner(context)->id, bytes};
  return call_daemon(GWSIM_ALLOCATE, &request, sizeof request, NULL, 0);
}

CUresult discharge(struct CUctx_st *context, uint64_t bytes) {
  struct gwsim_memory request = {memory_owner(context)->id, bytes};
  return call_daemon(GWSIM_FREE, &request, sizeof request, NULL, 0);
}

CUresult allocate(CUdeviceptr *pointer, uint64_t bytes, uint64_t alignment, struct CUctx_st *context,
                  enum block_kind kind) {
  lock_state();
  CUresult result = charge(context, bytes);
  if (result == CUDA_SUCCESS) {
    struct block *block = add_block(bytes, alignment, memory_owner(context), kind);
    // What is shown in other places has a file of its own behind it.
    bool shown = kind == MANAGED_BLOCK || kind == PHYSICAL_BLOCK;
    if (block != NULL && (!shown || back_empty(block->offset, bytes))) {
      *pointer = DEVICE_BASE + block->offset;
    } else {
      if (block != NULL) remove_block(block);
      discharge(context, bytes);
      result = CUDA_ERROR_OUT_OF_MEMORY;
    }
  }
  unlock_state();
  return result;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
  struct CUctx_st *context;
  CUresult result = check_context(&context);
  if (result != CUDA_SUCCESS) return result;
  if (pointer == NULL || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  // A page is no two blocks': another process may be shown one of them.
  return allocate(pointer, bytes, page_bytes(), context, PLAIN_BLOCK);
}

// Never more than the device has: nothing is moved to the host to make room.
EXPORT CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t bytes, unsigned int flags) {
  struct CUctx_st *context;
  CUresult result = check_context(&context);
  if (result != CUDA_SUCCESS) return result;
  if (pointer == NULL || bytes == 0 || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
    return CUDA_ERROR_INVALID_VALUE;
  if (bytes > DEVICE_WINDOW) return CUDA_ERROR_OUT_OF_MEMORY;
  uint64_t whole = round_up(bytes, page_bytes());
  CUdeviceptr made;
  result = allocate(&made, whole, page_bytes(), context, MANAGED_BLOCK);
  if (result != CUDA_SUCCESS) return result;
  if (!show_at(made - DEVICE_BASE, whole, (void *)made)) {
    cuMemFree_v2(made);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *pointer = made;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height,
                                   unsigned int element) {
  if (pitch == NULL || (element != 4 && element != 8 && element != 16) || width == 0 || height == 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (width > DEVICE_WINDOW || height > DEVICE_WINDOW / round_up(width, PITCH_BYTES)) return CUDA_ERROR_OUT_OF_MEMORY;
  *pitch = round_up(width, PITCH_BYTES);
  return cuMemAlloc_v2(pointer, *pitch * height);
}

CUresult give_back(CUdeviceptr pointer) {
  CUresult result = CUDA_ERROR_INVALID_VALUE;
  lock_state();
  struct block *block = block_with(pointer, 0);
  bool is_allocation = block != NULL && (block->kind == PLAIN_BLOCK || block->kind == MANAGED_BLOCK);
  if (is_allocation && DEVICE_BASE + block->offset == pointer) result = free_block(block);
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
  struct gwsim_context request = {.id = memory_owner(context)->id};
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
  bool managed = block != NULL && block->kind == MANAGED_BLOCK;
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
  case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    *(void **)value = managed ? (void *)pointer : NULL;
    return managed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    *(unsigned *)value = managed;
    return CUDA_SUCCESS;
  case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    *(int *)value = owner->device;
    return CUDA_SUCCESS;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}
