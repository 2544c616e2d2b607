// The part of the CUDA driver's binary interface that the hooks see, declared here: no CUDA header is needed to build.
#ifndef GPUWHISK_TOKENS_CUDA_ABI_H
#define GPUWHISK_TOKENS_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef uint64_t CUmemHandle; // CUmemGenericAllocationHandle
typedef struct CUctx_st *CUcontext;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUarray_st *CUarray;
typedef struct CUmipmappedArray_st *CUmipmappedArray;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;

enum {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_CLIENT_TERMINATED = 810,
};

enum { PER_THREAD_STREAM_FLAG = 2 }; // cuGetProcAddress: CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
enum { CAPTURE_NONE = 0 };           // CUstreamCaptureStatus
enum { NODE_KERNEL = 0, NODE_GRAPH = 4 };
enum { LOCATION_DEVICE = 1 };

/** CUlaunchConfig, as far as it is read. */
typedef struct {
  unsigned grid_x, grid_y, grid_z;
  unsigned block_x, block_y, block_z;
  unsigned shared_bytes;
  CUstream stream;
} CUlaunchConfig;

/** CUDA_LAUNCH_PARAMS, of a launch on several devices. */
typedef struct {
  CUfunction function;
  unsigned grid_x, grid_y, grid_z;
  unsigned block_x, block_y, block_z;
  unsigned shared_bytes;
  CUstream stream;
  void **parameters;
} CUlaunchParams;

/** CUDA_KERNEL_NODE_PARAMS: both versions begin like this; the room is for what follows. */
typedef struct {
  CUfunction function;
  unsigned grid_x, grid_y, grid_z;
  unsigned char rest[232];
} CUkernelNodeParams;

/** CUDA_ARRAY_DESCRIPTOR and CUDA_ARRAY3D_DESCRIPTOR. */
typedef struct {
  size_t width, height;
  int format;
  unsigned channels;
} CUarrayDescriptor;
typedef struct {
  size_t width, height, depth;
  int format;
  unsigned channels;
  unsigned flags;
} CUarray3dDescriptor;

/** CUmemAllocationProp, as far as it is read. */
typedef struct {
  int type;
  int handle_types;
  int location_type;
  int location_id;
} CUmemProperties;

#endif
