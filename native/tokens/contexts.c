// Contexts, which hold device memory themselves, and take all of theirs with them. What a program is told of the
// device's memory is its cap.
#include "tokens.h"

static CUresult settle(CUresult result, struct account *account, CUcontext context, int64_t bytes) {
  struct allocation allocation = {.key = (uint64_t)context, .bytes = bytes, .context = context, .kind = CONTEXT,
                                  .account = (uint32_t)(account - accounts)};
  if (result == CUDA_SUCCESS && ledger_add(&allocation)) return CUDA_SUCCESS;
  discharge_memory(account, bytes);
  return result;
}

#define CREATE(symbol, device, ...)                                                                                    \
  do {                                                                                                                 \
    __typeof__(&(symbol)) real = hook_real(HOOK_##symbol);                                                             \
    if (real == NULL) return CUDA_ERROR_NOT_FOUND;                                                                     \
    if (LOAD(accounts_attention) != 0) accounts_attend();                                                              \
    struct account *account = account_of_device(device);                                                               \
    int64_t bytes = LOAD(account->page->context_bytes);                                                                \
    if (LOAD(account->page->ended) != 0) return CUDA_ERROR_CLIENT_TERMINATED;                                          \
    if (!charge_memory(account, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;                                               \
    CUresult result = real(__VA_ARGS__);                                                                               \
    return settle(result, account, result == CUDA_SUCCESS ? *context : NULL, bytes);                                   \
  } while (0)

EXPORT CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device) {
  CREATE(cuCtxCreate_v2, device, context, flags, device);
}
EXPORT CUresult cuCtxCreate_v3(CUcontext *context, void *affinities, int count, unsigned flags, CUdevice device) {
  CREATE(cuCtxCreate_v3, device, context, affinities, count, flags, device);
}
EXPORT CUresult cuCtxCreate_v4(CUcontext *context, void *parameters, unsigned flags, CUdevice device) {
  CREATE(cuCtxCreate_v4, device, context, parameters, flags, device);
}

static void forget_all_of(CUcontext context) {
  struct allocation allocation;
  while (ledger_remove_of(context, &allocation)) discharge_memory(&accounts[allocation.account], allocation.bytes);
}

EXPORT CUresult cuCtxDestroy_v2(CUcontext context) {
  __typeof__(&cuCtxDestroy_v2) real = hook_real(HOOK_cuCtxDestroy_v2);
  if (real == NULL) return CUDA_ERROR_NOT_FOUND;
  CUresult result = real(context);
  if (result == CUDA_SUCCESS) forget_all_of(context);
  return result;
}

// A device's primary context lives from its first retaining to its last release.
enum { MAX_DEVICES = 64 };
static struct primary {
  CUcontext context;
  int retained;
} primaries[MAX_DEVICES];

static struct primary *primary_of(CUdevice device) {
  return device >= 0 && device < MAX_DEVICES ? &primaries[device] : NULL;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);

static CUresult retain_first(CUcontext *context, CUdevice device) {
  CREATE(cuDevicePrimaryCtxRetain, device, context, device);
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  struct primary *primary = primary_of(device);
  bool is_first = primary != NULL && __atomic_fetch_add(&primary->retained, 1, __ATOMIC_SEQ_CST) == 0;
  __typeof__(&cuDevicePrimaryCtxRetain) real = hook_real(HOOK_cuDevicePrimaryCtxRetain);
  if (real == NULL) return CUDA_ERROR_NOT_FOUND;
  CUresult result = is_first ? retain_first(context, device) : real(context, device);
  if (primary == NULL) return result;
  if (result == CUDA_SUCCESS) STORE(primary->context, *context);
  else __atomic_fetch_sub(&primary->retained, 1, __ATOMIC_SEQ_CST);
  return result;
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  __typeof__(&cuDevicePrimaryCtxRelease_v2) real = hook_real(HOOK_cuDevicePrimaryCtxRelease_v2);
  if (real == NULL) return CUDA_ERROR_NOT_FOUND;
  CUresult result = real(device);
  struct primary *primary = primary_of(device);
  if (result != CUDA_SUCCESS || primary == NULL || LOAD(primary->retained) == 0) return result;
  if (__atomic_sub_fetch(&primary->retained, 1, __ATOMIC_SEQ_CST) == 0) forget_all_of(LOAD(primary->context));
  return result;
}

/** Ends the context for all who retained it. */
EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  __typeof__(&cuDevicePrimaryCtxReset_v2) real = hook_real(HOOK_cuDevicePrimaryCtxReset_v2);
  if (real == NULL) return CUDA_ERROR_NOT_FOUND;
  CUresult result = real(device);
  struct primary *primary = primary_of(device);
  if (result != CUDA_SUCCESS || primary == NULL) return result;
  forget_all_of(LOAD(primary->context));
  STORE(primary->retained, 0);
  return result;
}

EXPORT CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes) {
  __typeof__(&cuMemGetInfo_v2) real = hook_real(HOOK_cuMemGetInfo_v2);
  if (real == NULL) return CUDA_ERROR_NOT_FOUND;
  CUresult result = real(free_bytes, total_bytes);
  if (result != CUDA_SUCCESS) return result;
  struct account *account = account_here();
  int64_t cap = LOAD(account->page->memory_cap), used = memory_used(account);
  size_t left = used < cap ? (size_t)(cap - used) : 0;
  if (*total_bytes > (size_t)cap) *total_bytes = (size_t)cap;
  if (*free_bytes > left) *free_bytes = left;
  return result;
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  __typeof__(&cuDeviceTotalMem_v2) real = hook_real(HOOK_cuDeviceTotalMem_v2);
  if (real == NULL) return CUDA_ERROR_NOT_FOUND;
  CUresult result = real(bytes, device);
  if (result != CUDA_SUCCESS) return result;
  account_here(); // registers where that is due
  size_t cap = (size_t)LOAD(account_of_device(device)->page->memory_cap);
  if (*bytes > cap) *bytes = cap;
  return result;
}
