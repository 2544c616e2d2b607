// How what runs on a device at once shares it.
#ifndef GPUWHISK_CUDASIM_SHARING_H
#define GPUWHISK_CUDASIM_SHARING_H

#include "devices.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpuwhisk::sim {

/** A kernel that runs. */
struct Running {
  /** Kernels of one owner (a context) take no more than `owner_cap` SMs together. */
  const void *owner;
  double owner_cap;
  double demand;     // SMs that its blocks fill.
  double work;       // SM-ns of a reference SM; more than 0.
  double dram_bytes; // Of the whole kernel.
  double l2_bytes;   // That it works on.
  // Results:
  double sms = 0;
  double rate = 0;   // Part of the kernel done per ns.
};

struct Capacity {
  double sms, speed;
  double bandwidth; // bytes per ns
  double l2_bytes;
};

/**
 * Max–min fair SMs under the demands and caps; then all that use memory slow down alike where together they ask for more
 * bandwidth than there is (PROTEAN, section 3: the sum of fractional bandwidths), and by at most `l2_loss` where their
 * working sets overflow the cache.
 */
void share(std::vector<Running *> &kernels, const Capacity &capacity);

/** What a kernel loses at most to a cache full of others' data: of the work's time. Assumed, not measured. */
constexpr double l2_loss = GPUWHISK_L2_LOSS;

} // namespace gpuwhisk::sim

#endif
