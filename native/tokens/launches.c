// Launches of kernels: each is charged its blocks and passed on.
#include "tokens.h"

/** A launch: charged first, then the driver's own function with the same arguments. */
#define CHARGED(symbol, blocks, stream, per_thread, ...)                                                               \
  do {                                                                                                                 \
    __typeof__(&(symbol)) real = hook_real(HOOK_##symbol);                                                             \
    if (UNLIKELY(real == NULL)) return CUDA_ERROR_NOT_FOUND;                                                           \
    CUresult charged = charge_launch(blocks, stream, per_thread);                                                      \
    return LIKELY(charged == CUDA_SUCCESS) ? real(__VA_ARGS__) : charged;                                              \
  } while (0)

#define LAUNCH_KERNEL(symbol, per_thread)                                                                              \
  EXPORT CUresult symbol(CUfunction function, unsigned x, unsigned y, unsigned z, unsigned block_x, unsigned block_y,  \
                         unsigned block_z, unsigned shared_bytes, CUstream stream, void **parameters, void **extra) {  \
    CHARGED(symbol, blocks_of(x, y, z), stream, per_thread, function, x, y, z, block_x, block_y, block_z,              \
            shared_bytes, stream, parameters, extra);                                                                  \
  }

#define LAUNCH_CONFIGURED(symbol, per_thread)                                                                          \
  EXPORT CUresult symbol(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra) {         \
    int64_t blocks = config != NULL ? blocks_of(config->grid_x, config->grid_y, config->grid_z) : 0;                   \
    CHARGED(symbol, blocks, config != NULL ? config->stream : NULL, per_thread, config, function, parameters, extra);  \
  }

#define LAUNCH_COOPERATIVE(symbol, per_thread)                                                                         \
  EXPORT CUresult symbol(CUfunction function, unsigned x, unsigned y, unsigned z, unsigned block_x, unsigned block_y,  \
                         unsigned block_z, unsigned shared_bytes, CUstream stream, void **parameters) {                \
    CHARGED(symbol, blocks_of(x, y, z), stream, per_thread, function, x, y, z, block_x, block_y, block_z,              \
            shared_bytes, stream, parameters);                                                                         \
  }

LAUNCH_KERNEL(cuLaunchKernel, false)
LAUNCH_KERNEL(cuLaunchKernel_ptsz, true)
LAUNCH_CONFIGURED(cuLaunchKernelEx, false)
LAUNCH_CONFIGURED(cuLaunchKernelEx_ptsz, true)
LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel, false)
LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel_ptsz, true)

/** On several devices at once: all is charged to the current one's share. */
EXPORT CUresult cuLaunchCooperativeKernelMultiDevice(CUlaunchParams *launches, unsigned count, unsigned flags) {
  int64_t blocks = 0;
  for (unsigned i = 0; launches != NULL && i < count; i += 1)
    blocks += blocks_of(launches[i].grid_x, launches[i].grid_y, launches[i].grid_z);
  CUstream stream = launches != NULL && count > 0 ? launches[0].stream : NULL;
  CHARGED(cuLaunchCooperativeKernelMultiDevice, blocks, stream, false, launches, count, flags);
}

// The oldest ones, which no longer are in the headers.
EXPORT CUresult cuLaunch(CUfunction function) { CHARGED(cuLaunch, 1, NULL, false, function); }

EXPORT CUresult cuLaunchGrid(CUfunction function, int width, int height) {
  CHARGED(cuLaunchGrid, blocks_of((unsigned)width, (unsigned)height, 1), NULL, false, function, width, height);
}

EXPORT CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream) {
  CHARGED(cuLaunchGridAsync, blocks_of((unsigned)width, (unsigned)height, 1), stream, false, function, width, height,
          stream);
}

#define LAUNCH_GRAPH(symbol, per_thread)                                                                               \
  EXPORT CUresult symbol(CUgraphExec exec, CUstream stream) {                                                          \
    CHARGED(symbol, price_of(exec), stream, per_thread, exec, stream);                                                 \
  }
LAUNCH_GRAPH(cuGraphLaunch, false)
LAUNCH_GRAPH(cuGraphLaunch_ptsz, true)
