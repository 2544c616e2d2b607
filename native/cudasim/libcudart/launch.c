#include "runtime.h"

#include <string.h>

// f<<<grid, block, shared, stream>>>() is compiled to a push, a call of the stub, and a pop in there.
enum { MAX_NESTED = 16 };
struct configuration {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
};
static __thread struct configuration stack[MAX_NESTED];
static __thread int depth;

EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
  if (depth == MAX_NESTED) return 1;
  stack[depth++] = (struct configuration){grid, block, shared, stream};
  return 0;
}

EXPORT cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
  if (depth == 0) return keep_error(cudaErrorMissingConfiguration);
  const struct configuration *top = &stack[--depth];
  *grid = top->grid;
  *block = top->block;
  *shared = top->shared;
  *(cudaStream_t *)stream = top->stream;
  return cudaSuccess;
}

// What the driver calls an invalid value is the configuration here.
static cudaError_t settle(CUresult result) {
  return keep_error(result == CUDA_ERROR_INVALID_VALUE ? cudaErrorInvalidConfiguration : (cudaError_t)result);
}

static cudaError_t cudaLaunchKernel_in(int per_thread, const void *stub, dim3 grid, dim3 block, void **arguments,
                                       size_t shared, cudaStream_t stream) {
  CUfunction kernel;
  cudaError_t error = find_kernel(stub, &kernel);
  if (error != cudaSuccess) return keep_error(error);
  return settle(runtime_drivers[per_thread].cuLaunchKernel(kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                                           (unsigned)shared, stream, arguments, NULL));
}
IN_BOTH(cudaLaunchKernel,
        (const void *stub, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream), _ptsz, stub,
        grid, block, arguments, shared, stream)

static cudaError_t cudaLaunchCooperativeKernel_in(int per_thread, const void *stub, dim3 grid, dim3 block,
                                                  void **arguments, size_t shared, cudaStream_t stream) {
  CUfunction kernel;
  cudaError_t error = find_kernel(stub, &kernel);
  if (error != cudaSuccess) return keep_error(error);
  return settle(runtime_drivers[per_thread].cuLaunchCooperativeKernel(
      kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z, (unsigned)shared, stream, arguments));
}
IN_BOTH(cudaLaunchCooperativeKernel,
        (const void *stub, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream), _ptsz, stub,
        grid, block, arguments, shared, stream)

static cudaError_t cudaLaunchKernelExC_in(int per_thread, const cudaLaunchConfig_t *config, const void *stub,
                                          void **arguments) {
  CUfunction kernel;
  cudaError_t error = find_kernel(stub, &kernel);
  if (error != cudaSuccess) return keep_error(error);
  CUlaunchConfig given = {.gridDimX = config->gridDim.x,
                          .gridDimY = config->gridDim.y,
                          .gridDimZ = config->gridDim.z,
                          .blockDimX = config->blockDim.x,
                          .blockDimY = config->blockDim.y,
                          .blockDimZ = config->blockDim.z,
                          .sharedMemBytes = (unsigned)config->dynamicSmemBytes,
                          .hStream = config->stream,
                          .attrs = config->attrs,
                          .numAttrs = config->numAttrs};
  return settle(runtime_drivers[per_thread].cuLaunchKernelEx(&given, kernel, arguments, NULL));
}
IN_BOTH(cudaLaunchKernelExC, (const cudaLaunchConfig_t *config, const void *stub, void **arguments), _ptsz, config,
        stub, arguments)

EXPORT cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *stub) {
  CUfunction kernel;
  cudaError_t error = find_kernel(stub, &kernel);
  if (error != cudaSuccess) return keep_error(error);
  memset(attributes, 0, sizeof *attributes);
  DRIVER(cuFuncGetAttribute)(&attributes->maxThreadsPerBlock, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel);
  DRIVER(cuFuncGetAttribute)(&attributes->numRegs, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel);
  return cudaSuccess;
}

EXPORT cudaError_t cudaFuncSetAttribute(const void *stub, int attribute, int value) {
  CUfunction kernel;
  cudaError_t error = find_kernel(stub, &kernel);
  if (error != cudaSuccess) return keep_error(error);
  return keep_error((cudaError_t)DRIVER(cuFuncSetAttribute)(kernel, (CUfunction_attribute)attribute, value));
}

EXPORT cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *stub, int block_size,
                                                                 size_t shared) {
  CUfunction kernel;
  cudaError_t error = find_kernel(stub, &kernel);
  if (error != cudaSuccess) return keep_error(error);
  return keep_error((cudaError_t)DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessor)(blocks, kernel, block_size, shared));
}
