// Device memory that other processes open: its pages go through the daemon, and are counted with who allocated it.
#include "state.h"

#include <string.h>
#include <unistd.h>

/** What a program passes on: 64 bytes for CUDA. */
struct handle {
  uint64_t key, bytes;
  int32_t pid;
};

static CUresult publish(struct block *block) {
  int file;
  if (!back_anew(block->offset, block->bytes, &file)) return CUDA_ERROR_OUT_OF_MEMORY;
  struct gwsim_ipc request = {.context = block->context->id, .bytes = block->bytes}, answer;
  int passed = file;
  CUresult result = call_daemon_with(GWSIM_IPC_PUBLISH, &request, sizeof request, &answer, sizeof answer, &passed);
  close(file);
  if (result == CUDA_SUCCESS) block->exported = answer.key;
  return result;
}

void withdraw(struct block *block) {
  struct gwsim_ipc request = {.context = block->context->id, .key = block->exported};
  call_daemon(GWSIM_IPC_WITHDRAW, &request, sizeof request, NULL, 0);
  block->exported = 0;
  back_anew(block->offset, block->bytes, NULL);
}

EXPORT CUresult cuIpcGetMemHandle(CUipcMemHandle *made, CUdeviceptr pointer) {
  struct CUctx_st *context;
  CUresult result = check_context(&context);
  if (result != CUDA_SUCCESS) return result;
  if (made == NULL) return CUDA_ERROR_INVALID_VALUE;
  lock_state();
  struct block *block = block_with(pointer, 0);
  if (block == NULL || block->kind != PLAIN_BLOCK) result = CUDA_ERROR_INVALID_VALUE;
  else if (block->exported == 0) result = publish(block);
  if (result == CUDA_SUCCESS) {
    struct handle handle = {block->exported, block->bytes, gwsim_state->pid};
    memset(made, 0, sizeof *made);
    memcpy(made, &handle, sizeof handle);
  }
  unlock_state();
  return result;
}

static CUresult open_handle(CUdeviceptr *pointer, const struct handle *handle, struct CUctx_st *context) {
  struct gwsim_ipc request = {.context = memory_owner(context)->id, .key = handle->key}, answer;
  int file = -1;
  CUresult result = call_daemon_with(GWSIM_IPC_OPEN, &request, sizeof request, &answer, sizeof answer, &file);
  if (result != CUDA_SUCCESS) return result;
  if (file < 0) return CUDA_ERROR_UNKNOWN;
  struct block *block = add_block(answer.bytes, page_bytes(), memory_owner(context), IMPORTED_BLOCK);
  if (block != NULL && !back_with(block->offset, block->bytes, file)) {
    remove_block(block);
    block = NULL;
  }
  close(file);
  if (block == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  *pointer = DEVICE_BASE + block->offset;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pointer, CUipcMemHandle given, unsigned int flags) {
  struct CUctx_st *context;
  CUresult result = check_context(&context);
  if (result != CUDA_SUCCESS) return result;
  struct handle handle;
  memcpy(&handle, &given, sizeof handle);
  if (pointer == NULL || flags > CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) return CUDA_ERROR_INVALID_VALUE;
  if (handle.pid == gwsim_state->pid) return CUDA_ERROR_INVALID_CONTEXT; // Its own is not opened.
  lock_state();
  result = open_handle(pointer, &handle, context);
  unlock_state();
  return result;
}

EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr pointer) {
  struct CUctx_st *context;
  CUresult result = check_context(&context);
  if (result == CUDA_SUCCESS) result = wait_for_context(context);
  if (result != CUDA_SUCCESS) return result;
  lock_state();
  struct block *block = block_with(pointer, 0);
  bool opened = block != NULL && block->kind == IMPORTED_BLOCK && DEVICE_BASE + block->offset == pointer;
  if (opened) remove_block(block);
  unlock_state();
  return opened ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
