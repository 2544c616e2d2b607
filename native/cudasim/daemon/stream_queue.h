#ifndef GPUWHISK_CUDASIM_STREAM_QUEUE_H
#define GPUWHISK_CUDASIM_STREAM_QUEUE_H

#include "../channel.h"
#include "sharing.h"

#include <deque>

namespace gpuwhisk::sim {

struct Queued {
  gwsim_entry entry;
  uint64_t index;  // Order of submission, in its client.
  double stamp_ns; // Does not begin before.
};

/** A client's stream: the first operation may be running, the others wait for it. */
struct StreamQueue {
  uint32_t slot = 0;
  std::deque<Queued> operations;
  bool runs = false;
  double left = 0; // Of what runs: part of a kernel, bytes of a copy.
  double rate = 0; // Of `left`, per ns.
  Running kernel{};
};

} // namespace gpuwhisk::sim

#endif
