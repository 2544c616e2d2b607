// What the tracer and the helper that calls the driver say to each other, over a socket of datagrams.
#pragma once

#include <cstdint>

namespace gpuwhisk::inject {

struct CheckpointRequest {
  enum : uint32_t {
    save = 1,   // Lock and checkpoint.
    restore = 2 // Restore and unlock.
  };
  uint32_t command;
  int32_t target;
  uint32_t timeout_ms; // Of the lock.
};

/** Also said once at the start, of cuInit. */
struct CheckpointAnswer {
  int32_t result; // A CUresult, or -1 where there is no such driver.
  int32_t pid;    // The helper's.
  uint32_t lost;  // The target is neither as it was nor as it was to be.
};

} // namespace gpuwhisk::inject
