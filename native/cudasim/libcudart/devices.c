#include "runtime.h"

#include <string.h>

static int attribute_of(int device, CUdevice_attribute attribute) {
  int value = 0;
  DRIVER(cuDeviceGetAttribute)(&value, attribute, device);
  return value;
}

EXPORT cudaError_t cudaDeviceGetAttribute(int *value, int attribute, int device) {
  cudaError_t error = ready_driver();
  // The numbers are the driver's.
  return keep_error(error == cudaSuccess ? (cudaError_t)DRIVER(cuDeviceGetAttribute)(value, (CUdevice_attribute)attribute, device)
                                         : error);
}

static void describe(cudaDeviceProp *properties, int device) {
#define SET(field, attribute) properties->field = attribute_of(device, CU_DEVICE_ATTRIBUTE_##attribute)
  SET(major, COMPUTE_CAPABILITY_MAJOR);
  SET(minor, COMPUTE_CAPABILITY_MINOR);
  SET(multiProcessorCount, MULTIPROCESSOR_COUNT);
  SET(clockRate, CLOCK_RATE);
  SET(memoryClockRate, MEMORY_CLOCK_RATE);
  SET(memoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH);
  SET(l2CacheSize, L2_CACHE_SIZE);
  SET(computeMode, COMPUTE_MODE);
  SET(warpSize, WARP_SIZE);
  SET(regsPerBlock, MAX_REGISTERS_PER_BLOCK);
  SET(regsPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR);
  SET(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK);
  SET(maxThreadsDim[0], MAX_BLOCK_DIM_X);
  SET(maxThreadsDim[1], MAX_BLOCK_DIM_Y);
  SET(maxThreadsDim[2], MAX_BLOCK_DIM_Z);
  SET(maxGridSize[0], MAX_GRID_DIM_X);
  SET(maxGridSize[1], MAX_GRID_DIM_Y);
  SET(maxGridSize[2], MAX_GRID_DIM_Z);
  SET(maxThreadsPerMultiProcessor, MAX_THREADS_PER_MULTIPROCESSOR);
  SET(maxBlocksPerMultiProcessor, MAX_BLOCKS_PER_MULTIPROCESSOR);
  SET(integrated, INTEGRATED);
  SET(canMapHostMemory, CAN_MAP_HOST_MEMORY);
  SET(concurrentKernels, CONCURRENT_KERNELS);
  SET(ECCEnabled, ECC_ENABLED);
  SET(pciBusID, PCI_BUS_ID);
  SET(pciDeviceID, PCI_DEVICE_ID);
  SET(pciDomainID, PCI_DOMAIN_ID);
  SET(asyncEngineCount, ASYNC_ENGINE_COUNT);
  SET(unifiedAddressing, UNIFIED_ADDRESSING);
  SET(managedMemory, MANAGED_MEMORY);
  SET(cooperativeLaunch, COOPERATIVE_LAUNCH);
  SET(memoryPoolsSupported, MEMORY_POOLS_SUPPORTED);
#undef SET
  properties->sharedMemPerBlock = (size_t)attribute_of(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  properties->sharedMemPerMultiprocessor = (size_t)attribute_of(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  properties->totalConstMem = (size_t)attribute_of(device, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
  properties->memPitch = 0x7fffffff;
}

EXPORT cudaError_t cudaGetDeviceProperties_v2(cudaDeviceProp *properties, int device) {
  cudaError_t error = ready_driver();
  if (error != cudaSuccess) return keep_error(error);
  memset(properties, 0, sizeof *properties);
  error = (cudaError_t)DRIVER(cuDeviceGetName)(properties->name, sizeof properties->name, device);
  if (error == cudaSuccess) error = (cudaError_t)DRIVER(cuDeviceGetUuid_v2)(&properties->uuid, device);
  if (error == cudaSuccess) error = (cudaError_t)DRIVER(cuDeviceTotalMem_v2)(&properties->totalGlobalMem, device);
  if (error == cudaSuccess) describe(properties, device);
  return keep_error(error);
}
