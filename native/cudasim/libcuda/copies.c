// Copies and fillings. A call waits for its end unless it is an ...Async one.
#include "state.h"

// Within the device a copy goes in pieces that no compute limits, only the memory's bandwidth.
enum { PIECE_BYTES = 64 << 10 };

static CUresult run(struct CUgraphNode_st *operation, CUstream given, bool per_thread, bool waits) {
  CUstream stream;
  CUresult result = resolve_stream(given, per_thread, &stream);
  if (result != CUDA_SUCCESS || operation->bytes == 0) return result;
  if (!check_effect(operation)) return CUDA_ERROR_INVALID_VALUE;
  if (waits && stream->capture != NULL) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  uint64_t sequence;
  result = carry_out(stream, operation, &sequence);
  return result == CUDA_SUCCESS && waits ? wait_for(stream->slot, sequence) : result;
}

static void set_pieces(struct gwsim_entry *entry, uint64_t bytes, int passes) {
  entry->type = GWSIM_KERNEL;
  entry->flags = GWSIM_UNCOUNTED;
  entry->kernel.blocks = (bytes + PIECE_BYTES - 1) / PIECE_BYTES;
  entry->kernel.blocks_per_sm = 8;
  entry->kernel.ns_per_block = 1000;
  entry->kernel.sensitivity = entry->kernel.pressure = 1;
  entry->kernel.dram_bytes_per_block = (double)bytes * passes / (double)entry->kernel.blocks;
}

static CUresult to_device(CUdeviceptr to, const void *from, size_t bytes, CUstream stream, bool per_thread, bool waits) {
  struct CUgraphNode_st operation = {.type = NODE_TO_DEVICE, .to_device = to, .from_host = from, .bytes = bytes};
  operation.entry.type = GWSIM_TO_DEVICE;
  operation.entry.bytes = bytes;
  return run(&operation, stream, per_thread, waits);
}

static CUresult to_host(void *to, CUdeviceptr from, size_t bytes, CUstream stream, bool per_thread, bool waits) {
  struct CUgraphNode_st operation = {.type = NODE_TO_HOST, .to_host = to, .from_device = from, .bytes = bytes};
  operation.entry.type = GWSIM_TO_HOST;
  operation.entry.bytes = bytes;
  return run(&operation, stream, per_thread, waits);
}

static CUresult within(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream, bool per_thread, bool waits) {
  struct CUgraphNode_st operation = {.type = NODE_WITHIN, .to_device = to, .from_device = from, .bytes = bytes};
  if (bytes > 0) set_pieces(&operation.entry, bytes, 2);
  return run(&operation, stream, per_thread, waits);
}

static CUresult fill(CUdeviceptr to, uint32_t value, uint32_t width, size_t count, CUstream stream, bool per_thread,
                     bool waits) {
  if (count > DEVICE_WINDOW || to % width != 0) return CUDA_ERROR_INVALID_VALUE;
  struct CUgraphNode_st operation = {
      .type = NODE_FILL, .to_device = to, .value = value, .width = width, .bytes = count * width};
  if (count > 0) set_pieces(&operation.entry, operation.bytes, 1);
  return run(&operation, stream, per_thread, waits);
}

#define COPY(name, to_type, from_type, call)                                                                          \
  EXPORT CUresult name##_v2(to_type to, from_type from, size_t bytes) {                                               \
    return call(to, from, bytes, NULL, false, true);                                                                  \
  }                                                                                                                   \
  EXPORT CUresult name##_v2_ptds(to_type to, from_type from, size_t bytes) {                                          \
    return call(to, from, bytes, NULL, true, true);                                                                   \
  }                                                                                                                   \
  EXPORT CUresult name##Async_v2(to_type to, from_type from, size_t bytes, CUstream stream) {                         \
    return call(to, from, bytes, stream, false, false);                                                               \
  }                                                                                                                   \
  EXPORT CUresult name##Async_v2_ptsz(to_type to, from_type from, size_t bytes, CUstream stream) {                    \
    return call(to, from, bytes, stream, true, false);                                                                \
  }
#undef cuMemcpyHtoD
#undef cuMemcpyDtoH
#undef cuMemcpyDtoD
COPY(cuMemcpyHtoD, CUdeviceptr, const void *, to_device)
COPY(cuMemcpyDtoH, void *, CUdeviceptr, to_host)
COPY(cuMemcpyDtoD, CUdeviceptr, CUdeviceptr, within)

#define FILL(name, type, width)                                                                                       \
  EXPORT CUresult name##_v2(CUdeviceptr to, type value, size_t count) {                                               \
    return fill(to, value, width, count, NULL, false, true);                                                          \
  }                                                                                                                   \
  EXPORT CUresult name##_v2_ptds(CUdeviceptr to, type value, size_t count) {                                          \
    return fill(to, value, width, count, NULL, true, true);                                                           \
  }                                                                                                                   \
  EXPORT CUresult name##Async(CUdeviceptr to, type value, size_t count, CUstream stream) {                            \
    return fill(to, value, width, count, stream, false, false);                                                       \
  }                                                                                                                   \
  EXPORT CUresult name##Async_ptsz(CUdeviceptr to, type value, size_t count, CUstream stream) {                       \
    return fill(to, value, width, count, stream, true, false);                                                        \
  }
#undef cuMemsetD8
#undef cuMemsetD16
#undef cuMemsetD32
FILL(cuMemsetD8, unsigned char, 1)
FILL(cuMemsetD16, unsigned short, 2)
FILL(cuMemsetD32, unsigned int, 4)
