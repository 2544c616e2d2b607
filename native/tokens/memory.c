// Allocations of device memory: charged before the driver is asked, refused with the error that a program expects of a
// full device, and written into the ledger.
#include "tokens.h"

static CUcontext current_context(void) {
  CUresult (*get)(CUcontext *) = driver_function("cuCtxGetCurrent");
  CUcontext context = NULL;
  return get != NULL && get(&context) == CUDA_SUCCESS ? context : NULL;
}

/** Past the hooks: the ledger has been written already. */
static CUresult release(enum allocation_kind kind, uint64_t key) {
  static const enum hook frees[] = {[MEMORY] = HOOK_cuMemFree_v2, [HANDLE] = HOOK_cuMemRelease, [ARRAY] = HOOK_cuArrayDestroy,
                                    [MIPMAPPED_ARRAY] = HOOK_cuMipmappedArrayDestroy};
  CUresult (*free_it)(uint64_t) = hook_real(frees[kind]);
  return free_it != NULL ? free_it(key) : CUDA_ERROR_NOT_FOUND;
}

/** After the driver's answer: into the ledger, or the charge is taken back. */
static CUresult settle(CUresult result, struct account *account, enum allocation_kind kind, uint64_t key, int64_t bytes) {
  if (result == CUDA_SUCCESS) {
    struct allocation allocation = {.key = key, .bytes = bytes, .context = current_context(), .kind = kind,
                                    .account = (uint32_t)(account - accounts)};
    if (ledger_add(&allocation)) return CUDA_SUCCESS;
    say("too many allocations at a time; one is refused");
    release(kind, key);
    result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  discharge_memory(account, bytes);
  return result;
}

/** Sizes beyond what can be counted are for the driver to refuse. */
static int64_t countable(size_t bytes) { return bytes <= INT64_MAX / 2 ? (int64_t)bytes : INT64_MAX / 2; }

/** Charged to the account `on`; not at all if that is NULL. */
#define ALLOCATE(symbol, on, kind, key, size, ...)                                                                     \
  do {                                                                                                                 \
    __typeof__(&(symbol)) real = hook_real(HOOK_##symbol);                                                             \
    if (real == NULL) return CUDA_ERROR_NOT_FOUND;                                                                     \
    struct account *account = on;                                                                                      \
    int64_t bytes = size;                                                                                              \
    if (account == NULL) return real(__VA_ARGS__);                                                                     \
    if (LOAD(account->page->ended) != 0) return CUDA_ERROR_CLIENT_TERMINATED;                                          \
    if (!charge_memory(account, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;                                               \
    CUresult result = real(__VA_ARGS__);                                                                               \
    return settle(result, account, kind, result == CUDA_SUCCESS ? (uint64_t)(key) : 0, bytes);                         \
  } while (0)

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t size) {
  ALLOCATE(cuMemAlloc_v2, account_here(), MEMORY, *pointer, countable(size), pointer, size);
}

/** Rows are padded by the driver, to 512 bytes on all present devices. */
EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height, unsigned element) {
  size_t row = (width + 511) & ~(size_t)511, size;
  if (__builtin_mul_overflow(row, height, &size)) size = SIZE_MAX;
  ALLOCATE(cuMemAllocPitch_v2, account_here(), MEMORY, *pointer, countable(size), pointer, pitch, width, height, element);
}

EXPORT CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t size, unsigned flags) {
  ALLOCATE(cuMemAllocManaged, account_here(), MEMORY, *pointer, countable(size), pointer, size, flags);
}

/** What a graph records is allocated when the graph runs, and is the graph's. */
#define ALLOCATE_ASYNC(symbol, per_thread)                                                                             \
  EXPORT CUresult symbol(CUdeviceptr *pointer, size_t size, CUstream stream) {                                         \
    bool recorded = LOAD(captures_active) != 0 && is_capturing(stream, per_thread);                                    \
    ALLOCATE(symbol, recorded ? NULL : account_here(), MEMORY, *pointer, countable(size), pointer, size, stream);      \
  }
ALLOCATE_ASYNC(cuMemAllocAsync, false)
ALLOCATE_ASYNC(cuMemAllocAsync_ptsz, true)

#define ALLOCATE_FROM_POOL(symbol, per_thread)                                                                         \
  EXPORT CUresult symbol(CUdeviceptr *pointer, size_t size, void *pool, CUstream stream) {                             \
    bool recorded = LOAD(captures_active) != 0 && is_capturing(stream, per_thread);                                    \
    ALLOCATE(symbol, recorded ? NULL : account_here(), MEMORY, *pointer, countable(size), pointer, size, pool,         \
             stream);                                                                                                  \
  }
ALLOCATE_FROM_POOL(cuMemAllocFromPoolAsync, false)
ALLOCATE_FROM_POOL(cuMemAllocFromPoolAsync_ptsz, true)

EXPORT CUresult cuMemCreate(CUmemHandle *handle, size_t size, const CUmemProperties *properties, unsigned long long flags) {
  account_here(); // registers where that is due
  bool on_device = properties != NULL && properties->location_type == LOCATION_DEVICE;
  ALLOCATE(cuMemCreate, on_device ? account_of_device(properties->location_id) : NULL, HANDLE, *handle, countable(size),
           handle, size, properties, flags);
}

/** Bytes of an array; `levels` of a mipmapped one, each half as wide, high and deep as the one before. */
static int64_t array_bytes(const CUarray3dDescriptor *array, unsigned levels) {
  // CUarray_format: 8, 16 and 32 bits. Others are packed formats, counted at their widest.
  static const struct { int format; int bytes; } formats[] = {{1, 1}, {2, 2}, {3, 4}, {8, 1}, {9, 2}, {10, 4}, {16, 2}, {32, 4}};
  if (array == NULL) return 0;
  size_t element = 4;
  for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i += 1)
    if (formats[i].format == array->format) element = (size_t)formats[i].bytes;
  unsigned __int128 sum = 0;
  size_t width = array->width, height = array->height, depth = array->depth;
  for (unsigned level = 0; level < levels && level < 64; level += 1) {
    sum += (unsigned __int128)width * (height > 0 ? height : 1) * (depth > 0 ? depth : 1) * element * array->channels;
    width = width > 1 ? width / 2 : 1;
    height /= 2;
    depth /= 2;
  }
  return sum < INT64_MAX / 2 ? (int64_t)sum : INT64_MAX / 2;
}

EXPORT CUresult cuArrayCreate_v2(CUarray *array, const CUarrayDescriptor *of) {
  CUarray3dDescriptor flat = {0};
  if (of != NULL) flat = (CUarray3dDescriptor){of->width, of->height, 0, of->format, of->channels, 0};
  ALLOCATE(cuArrayCreate_v2, account_here(), ARRAY, *array, array_bytes(&flat, 1), array, of);
}

EXPORT CUresult cuArray3DCreate_v2(CUarray *array, const CUarray3dDescriptor *of) {
  ALLOCATE(cuArray3DCreate_v2, account_here(), ARRAY, *array, array_bytes(of, 1), array, of);
}

EXPORT CUresult cuMipmappedArrayCreate(CUmipmappedArray *array, const CUarray3dDescriptor *of, unsigned levels) {
  ALLOCATE(cuMipmappedArrayCreate, account_here(), MIPMAPPED_ARRAY, *array, array_bytes(of, levels), array, of, levels);
}

/** Out of the ledger before it is freed: right after, another thread may be given the same address. */
#define FREE(symbol, kind, key, ...)                                                                                   \
  do {                                                                                                                 \
    __typeof__(&(symbol)) real = hook_real(HOOK_##symbol);                                                             \
    if (real == NULL) return CUDA_ERROR_NOT_FOUND;                                                                     \
    struct allocation removed;                                                                                         \
    bool known = ledger_remove(kind, (uint64_t)(key), &removed);                                                       \
    CUresult result = real(__VA_ARGS__);                                                                               \
    if (known && result == CUDA_SUCCESS) discharge_memory(&accounts[removed.account], removed.bytes);                  \
    if (known && result != CUDA_SUCCESS) ledger_add(&removed);                                                         \
    return result;                                                                                                     \
  } while (0)

EXPORT CUresult cuMemFree_v2(CUdeviceptr pointer) { FREE(cuMemFree_v2, MEMORY, pointer, pointer); }
EXPORT CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
  FREE(cuMemFreeAsync, MEMORY, pointer, pointer, stream);
}
EXPORT CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream) {
  FREE(cuMemFreeAsync_ptsz, MEMORY, pointer, pointer, stream);
}
EXPORT CUresult cuMemRelease(CUmemHandle handle) { FREE(cuMemRelease, HANDLE, handle, handle); }
EXPORT CUresult cuArrayDestroy(CUarray array) { FREE(cuArrayDestroy, ARRAY, array, array); }
EXPORT CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
  FREE(cuMipmappedArrayDestroy, MIPMAPPED_ARRAY, array, array);
}

/** A position in the ledger: what is allocated from here on can be freed together. */
EXPORT uint64_t gpuwhisk_tokens_mark(void) { return ledger_mark(); }

/**
 * Frees all device memory that was allocated after `mark` and is still held; contexts stay. Returns how many
 * allocations there were, or -1 if the driver refused one: then its memory may be lost until the process ends.
 */
EXPORT int gpuwhisk_tokens_free_since(uint64_t mark) {
  CUresult (*push)(CUcontext) = driver_function("cuCtxPushCurrent_v2");
  CUresult (*pop)(CUcontext *) = driver_function("cuCtxPopCurrent_v2");
  struct allocation allocation;
  int freed = 0;
  bool all = true;
  while (ledger_remove_after(mark, &allocation)) {
    CUcontext before;
    bool pushed = allocation.context != NULL && push != NULL && push(allocation.context) == CUDA_SUCCESS;
    if (release((enum allocation_kind)allocation.kind, allocation.key) != CUDA_SUCCESS) all = false;
    if (pushed && pop != NULL) pop(&before);
    discharge_memory(&accounts[allocation.account], allocation.bytes);
    freed += 1;
  }
  return all ? freed : -1;
}
