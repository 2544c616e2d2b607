#include "memory.h"

#include "kernels.h"

#include <stdlib.h>

enum { PIECE_BYTES = 2 << 20 };

static CUdeviceptr exported, imported;
static size_t exported_bytes, imported_bytes;

static bool is_filled(CUdeviceptr pointer, size_t bytes, unsigned char with, CUresult *result) {
  unsigned char *copy = malloc(bytes);
  bool filled = copy != NULL;
  if (*result == CUDA_SUCCESS) *result = cuMemcpyDtoH(copy, pointer, bytes);
  for (size_t at = 0; at < bytes && filled; at++) filled = copy[at] == with;
  free(copy);
  return filled && *result == CUDA_SUCCESS;
}

static void say(CUresult result, bool right) { printf("%d %s\n", result, right ? "right" : "wrong"); }

static void use_managed(size_t bytes) {
  CUdeviceptr pointer = 0;
  CUresult result = cuMemAllocManaged(&pointer, bytes, CU_MEM_ATTACH_GLOBAL);
  bool right = false;
  if (result == CUDA_SUCCESS) {
    char *host = (char *)pointer; // One address for both.
    memset(host, 1, bytes);
    right = is_filled(pointer, bytes, 1, &result);
    if (result == CUDA_SUCCESS) result = cuMemsetD8(pointer, 2, bytes);
    for (size_t at = 0; at < bytes; at++) right = right && host[at] == 2;
  }
  say(result, right);
}

static CUresult map_piece(CUdeviceptr at, CUmemGenericAllocationHandle *handle) {
  CUmemAllocationProp property = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  CUmemAccessDesc access = {property.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUresult result = cuMemCreate(handle, PIECE_BYTES, &property, 0);
  if (result != CUDA_SUCCESS) return result;
  result = cuMemMap(at, PIECE_BYTES, 0, *handle, 0);
  return result == CUDA_SUCCESS ? cuMemSetAccess(at, PIECE_BYTES, &access, 1) : result;
}

static void use_virtual(unsigned pieces) {
  CUdeviceptr first = 0;
  CUmemGenericAllocationHandle handles[64] = {0};
  size_t bytes = (size_t)pieces * PIECE_BYTES;
  CUresult result = cuMemAddressReserve(&first, bytes, 0, 0, 0);
  for (unsigned i = 0; i < pieces && result == CUDA_SUCCESS; i++) result = map_piece(first + (size_t)i * PIECE_BYTES, &handles[i]);
  if (result == CUDA_SUCCESS) result = cuMemsetD8(first, 7, bytes);
  bool right = is_filled(first, bytes, 7, &result);
  if (result == CUDA_SUCCESS) result = cuMemUnmap(first, PIECE_BYTES);
  CUresult after = cuMemsetD8(first, 1, bytes), again = cuMemMap(first, PIECE_BYTES, 0, handles[0], 0);
  if (result == CUDA_SUCCESS) result = cuMemUnmap(first, bytes);
  for (unsigned i = 0; i < pieces && result == CUDA_SUCCESS; i++) result = cuMemRelease(handles[i]);
  if (result == CUDA_SUCCESS) result = cuMemAddressFree(first, bytes);
  printf("%d %s %d %d\n", result, right ? "right" : "wrong", after, again);
}

static void use_pool(size_t bytes) {
  CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  CUmemoryPool pool = NULL;
  CUdeviceptr pointer = 0;
  CUresult result = cuMemPoolCreate(&pool, &props);
  if (result == CUDA_SUCCESS) result = cuMemAllocFromPoolAsync(&pointer, bytes, pool, NULL);
  if (result == CUDA_SUCCESS) result = cuMemsetD8Async(pointer, 3, bytes, NULL);
  bool right = is_filled(pointer, bytes, 3, &result);
  if (result == CUDA_SUCCESS) result = cuMemFreeAsync(pointer, NULL);
  if (result == CUDA_SUCCESS) result = cuMemPoolTrimTo(pool, 0);
  if (result == CUDA_SUCCESS) result = cuMemPoolDestroy(pool);
  say(result, right);
}

static void export_memory(size_t bytes) {
  CUipcMemHandle handle;
  CUresult result = cuMemAlloc(&exported, bytes);
  exported_bytes = bytes;
  if (result == CUDA_SUCCESS) result = cuMemsetD8(exported, 1, bytes);
  if (result == CUDA_SUCCESS) result = cuIpcGetMemHandle(&handle, exported);
  printf("%d ", result);
  for (size_t i = 0; i < sizeof handle && result == CUDA_SUCCESS; i++) printf("%02x", (unsigned char)handle.reserved[i]);
  printf(result == CUDA_SUCCESS ? "\n" : "-\n");
}

static void check_exported(void) {
  CUresult result = CUDA_SUCCESS;
  bool right = is_filled(exported, exported_bytes, 2, &result);
  if (result == CUDA_SUCCESS) result = cuMemFree(exported);
  say(result, right);
}

static void import_memory(const char *text) {
  CUipcMemHandle handle;
  for (size_t i = 0; i < sizeof handle; i++) {
    char digits[3] = {text[2 * i], text[2 * i + 1], '\0'};
    handle.reserved[i] = (char)strtol(digits, NULL, 16);
  }
  CUdeviceptr base = 0;
  CUresult result = cuIpcOpenMemHandle(&imported, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
  if (result == CUDA_SUCCESS) result = cuMemGetAddressRange(&base, &imported_bytes, imported);
  bool right = base == imported && is_filled(imported, imported_bytes, 1, &result);
  if (result == CUDA_SUCCESS) result = cuMemsetD8(imported, 2, imported_bytes);
  say(result, right);
}

static void check_imported(int with) {
  CUresult result = CUDA_SUCCESS;
  bool right = is_filled(imported, imported_bytes, (unsigned char)with, &result);
  if (result == CUDA_SUCCESS) result = cuIpcCloseMemHandle(imported);
  say(result, right);
}

static CUresult run_in(CUstream stream, int count, unsigned blocks, double ns, float *ms) {
  char ptx[256];
  snprintf(ptx, sizeof ptx, ".version 7.0\n// gpuwhisk threads=256 blocksPerSm=8 nsPerBlock=%f\n.visible .entry work() { ret; }\n", ns);
  CUmodule module;
  CUfunction work = NULL;
  CUevent start, end;
  CUresult result = cuModuleLoadData(&module, ptx);
  if (result == CUDA_SUCCESS) result = cuModuleGetFunction(&work, module, "work");
  cuEventCreate(&start, 0);
  cuEventCreate(&end, 0);
  for (int i = 0; i <= count && result == CUDA_SUCCESS; i++) {
    result = launch(work, blocks, NULL, stream);
    if (i == 0) cuEventRecord(start, stream); // Behind one that is loaded first.
  }
  cuEventRecord(end, stream);
  if (result == CUDA_SUCCESS) result = cuEventSynchronize(end);
  if (result == CUDA_SUCCESS) result = cuEventElapsedTime(ms, start, end);
  cuEventDestroy(start);
  cuEventDestroy(end);
  return result;
}

static void use_green(unsigned sms, int count, unsigned blocks, double ns) {
  CUdevResource all, part, own = {0};
  CUdevResourceDesc description;
  CUgreenCtx green = NULL;
  CUcontext primary, before;
  CUstream stream;
  unsigned groups = 1;
  float ms = 0;
  CUresult result = cuDevicePrimaryCtxRetain(&primary, 0);
  if (result == CUDA_SUCCESS) result = cuCtxPushCurrent(primary);
  if (result == CUDA_SUCCESS) result = cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM);
  if (result == CUDA_SUCCESS) result = cuDevSmResourceSplitByCount(&part, &groups, &all, NULL, 0, sms);
  if (result == CUDA_SUCCESS) result = cuDevResourceGenerateDesc(&description, &part, 1);
  if (result == CUDA_SUCCESS) result = cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM);
  if (result == CUDA_SUCCESS) result = cuGreenCtxGetDevResource(green, &own, CU_DEV_RESOURCE_TYPE_SM);
  if (result == CUDA_SUCCESS) result = cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0);
  if (result == CUDA_SUCCESS) result = run_in(stream, count, blocks, ns, &ms);
  if (result == CUDA_SUCCESS) result = cuGreenCtxDestroy(green);
  cuCtxPopCurrent(&before);
  printf("%d %u %.6f\n", result, own.sm.smCount, ms);
}

bool obey_memory(const char *line) {
  char word[32] = "", text[160] = "";
  double numbers[4] = {0};
  sscanf(line, "%31s %lf %lf %lf %lf", word, &numbers[0], &numbers[1], &numbers[2], &numbers[3]);
  if (strcmp(word, "import") == 0 && sscanf(line, "import %159s", text) == 1) import_memory(text);
  else if (strcmp(word, "managed") == 0) use_managed((size_t)numbers[0]);
  else if (strcmp(word, "virtual") == 0) use_virtual((unsigned)numbers[0]);
  else if (strcmp(word, "pool") == 0) use_pool((size_t)numbers[0]);
  else if (strcmp(word, "export") == 0) export_memory((size_t)numbers[0]);
  else if (strcmp(word, "exported") == 0) check_exported();
  else if (strcmp(word, "imported") == 0) check_imported((int)numbers[0]);
  else if (strcmp(word, "green") == 0) use_green((unsigned)numbers[0], (int)numbers[1], (unsigned)numbers[2], numbers[3]);
  else return false;
  return true;
}
