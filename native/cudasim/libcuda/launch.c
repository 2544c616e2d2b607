#define _GNU_SOURCE
#include "cpu_kernels.h"
#include "state.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void spin_until(uint64_t until_ns) {
  while (clock_ns() < until_ns) continue;
}

void warn_once(const struct CUfunc_st *function) {
  if (function->declared || __atomic_exchange_n(&gwsim_state->warned, true, __ATOMIC_RELAXED)) return;
  char text[256];
  int length = snprintf(text, sizeof text,
                        "cudasim: kernel %.120s declares no cost; it and others like it count as 5 microseconds a block\n",
                        function->name);
  if (write(STDERR_FILENO, text, (size_t)length) < 0) return; // Standard error has no reader.
}

// The first launch of a function brings it to the device (lazy loading).
static void load_lazily(CUfunction function) {
  if (!__atomic_exchange_n(&function->launched, true, __ATOMIC_RELAXED))
    sleep_simulated_us(gwsim_state->node.first_launch_us);
}

// Parameters packed into one buffer, at `extra`: their addresses.
static bool unpack(const struct CUfunc_st *function, void **extra, void **params) {
  char *buffer = NULL;
  size_t size = 0;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = extra[1];
    else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) size = *(size_t *)extra[1];
    else return false;
  }
  if (buffer == NULL || size < function->param_bytes) return function->param_count == 0;
  for (uint32_t i = 0; i < function->param_count; i++) params[i] = buffer + function->params[i].offset;
  return true;
}

static double scale_of(const struct CUfunc_st *function, void *const *params) {
  if (function->scaled_by < 0 || function->scaled_by >= (int)function->param_count || params == NULL) return 1;
  uint64_t value = 0;
  uint32_t size = function->params[function->scaled_by].size;
  if (size > sizeof value) return 1;
  memcpy(&value, params[function->scaled_by], size);
  return (double)value;
}

static void set_costs(struct CUgraphNode_st *operation, uint64_t blocks, uint64_t threads) {
  const struct CUfunc_st *function = operation->function;
  double part = (double)threads / function->threads, scale = scale_of(function, operation->params) * part;
  struct gwsim_entry *entry = &operation->entry;
  entry->type = GWSIM_KERNEL;
  entry->flags = function->faults ? GWSIM_FAULTS : 0;
  entry->kernel.blocks = blocks;
  entry->kernel.ns_per_block = function->ns_per_block * scale;
  entry->kernel.dram_bytes_per_block = function->dram_bytes_per_block * scale;
  entry->kernel.sensitivity = function->sensitivity;
  entry->kernel.pressure = function->pressure;
  uint32_t fit = (uint32_t)(function->blocks_per_sm / part);
  entry->kernel.blocks_per_sm = fit == 0 ? 1 : fit;
}

static CUresult launch(CUfunction function, const unsigned grid[3], const unsigned block[3], unsigned shared,
                       CUstream given, bool per_thread, void **params, void **extra) {
  uint64_t begin = clock_ns();
  CUstream stream;
  CUresult result = resolve_stream(given, per_thread, &stream);
  if (result != CUDA_SUCCESS) return result;
  if (function == NULL || function->kind != FUNCTION) return CUDA_ERROR_INVALID_HANDLE;
  uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2], threads = (uint64_t)block[0] * block[1] * block[2];
  if (blocks == 0 || threads == 0 || threads > 1024 || grid[0] > 0x7fffffff || grid[1] > 65535 || grid[2] > 65535 ||
      block[2] > 64)
    return CUDA_ERROR_INVALID_VALUE;
  void *unpacked[MAX_PARAMS];
  if (params == NULL && extra != NULL) {
    if (!unpack(function, extra, unpacked)) return CUDA_ERROR_INVALID_VALUE;
    params = unpacked;
  }
  if (params == NULL && function->param_count > 0) return CUDA_ERROR_INVALID_VALUE;
  struct CUgraphNode_st operation = {.type = NODE_KERNEL, .function = function, .shared = shared, .params = params};
  memcpy(operation.grid, grid, sizeof operation.grid);
  memcpy(operation.block, block, sizeof operation.block);
  set_costs(&operation, blocks, threads);
  warn_once(function);
  if (stream->capture == NULL) load_lazily(function);
  uint64_t sequence;
  result = carry_out(stream, &operation, &sequence);
  if (stream->capture == NULL) spin_until(begin + gwsim_state->node.launch_ns);
  return result;
}

EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                               unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,
                               CUstream stream, void **params, void **extra) {
  const unsigned grid[] = {grid_x, grid_y, grid_z}, block[] = {block_x, block_y, block_z};
  return launch(function, grid, block, shared, stream, false, params, extra);
}

EXPORT CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                                    unsigned int block_x, unsigned int block_y, unsigned int block_z,
                                    unsigned int shared, CUstream stream, void **params, void **extra) {
  const unsigned grid[] = {grid_x, grid_y, grid_z}, block[] = {block_x, block_y, block_z};
  return launch(function, grid, block, shared, stream, true, params, extra);
}

static CUresult launch_configured(const CUlaunchConfig *config, CUfunction function, bool per_thread, void **params,
                                  void **extra) {
  if (config == NULL) return CUDA_ERROR_INVALID_VALUE;
  const unsigned grid[] = {config->gridDimX, config->gridDimY, config->gridDimZ};
  const unsigned block[] = {config->blockDimX, config->blockDimY, config->blockDimZ};
  return launch(function, grid, block, config->sharedMemBytes, config->hStream, per_thread, params, extra);
}

EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params, void **extra) {
  return launch_configured(config, function, false, params, extra);
}

EXPORT CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction function, void **params, void **extra) {
  return launch_configured(config, function, true, params, extra);
}

// All of its blocks must be on the device at once.
static CUresult launch_cooperative(CUfunction function, const unsigned grid[3], const unsigned block[3], unsigned shared,
                                   CUstream stream, bool per_thread, void **params) {
  struct CUctx_st *context;
  CUresult result = check_context(&context);
  if (result != CUDA_SUCCESS) return result;
  if (function == NULL || function->kind != FUNCTION) return CUDA_ERROR_INVALID_HANDLE;
  if ((uint64_t)grid[0] * grid[1] * grid[2] > (uint64_t)function->blocks_per_sm * context->sm_count)
    return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  return launch(function, grid, block, shared, stream, per_thread, params, NULL);
}

EXPORT CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                          unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                          unsigned int block_z, unsigned int shared, CUstream stream, void **params) {
  const unsigned grid[] = {grid_x, grid_y, grid_z}, block[] = {block_x, block_y, block_z};
  return launch_cooperative(function, grid, block, shared, stream, false, params);
}

EXPORT CUresult cuLaunchCooperativeKernel_ptsz(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                               unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                               unsigned int block_z, unsigned int shared, CUstream stream,
                                               void **params) {
  const unsigned grid[] = {grid_x, grid_y, grid_z}, block[] = {block_x, block_y, block_z};
  return launch_cooperative(function, grid, block, shared, stream, true, params);
}
