// cuGetProcAddress, by which programs of CUDA 11.3 and newer get every entry point, itself included.
#include "tokens.h"

#include <string.h>

/** The hook for what the driver answered: by the function's address, or by name, version and kind of stream. */
static void *replace(const char *name, void *real, int version, uint64_t flags) {
  bool per_thread = (flags & PER_THREAD_STREAM_FLAG) != 0;
  // From CUDA 12 on the name stands for the function with flags.
  if (version >= 12000 && strcmp(name, "cuGraphInstantiate") == 0) return hook_replace(HOOK_cuGraphInstantiateWithFlags, real);
  int best = -1;
  for (int i = 0; i < HOOK_COUNT; i += 1) {
    const struct hook_row *row = &hook_rows[i];
    if (strcmp(name, row->name) != 0 && strcmp(name, row->symbol) != 0) continue;
    if (hook_real(i) == real || row->wrapper == real) return row->wrapper;
    if (row->since > version || (row->per_thread && !per_thread)) continue;
    if (best < 0 || row->per_thread > hook_rows[best].per_thread ||
        (row->per_thread == hook_rows[best].per_thread && row->since >= hook_rows[best].since))
      best = i;
  }
  return best < 0 ? real : hook_replace(best, real);
}

EXPORT CUresult cuGetProcAddress(const char *name, void **function, int version, uint64_t flags) {
  __typeof__(&cuGetProcAddress) real = hook_real(HOOK_cuGetProcAddress);
  if (real == NULL) return CUDA_ERROR_NOT_FOUND;
  CUresult result = real(name, function, version, flags);
  if (result == CUDA_SUCCESS && *function != NULL) *function = replace(name, *function, version, flags);
  return result;
}

EXPORT CUresult cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *status) {
  __typeof__(&cuGetProcAddress_v2) real = hook_real(HOOK_cuGetProcAddress_v2);
  if (real == NULL) return CUDA_ERROR_NOT_FOUND;
  CUresult result = real(name, function, version, flags, status);
  if (result == CUDA_SUCCESS && *function != NULL) *function = replace(name, *function, version, flags);
  return result;
}
