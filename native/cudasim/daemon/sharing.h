// How what runs on a device at once shares it.
#ifndef GPUWHISK_CUDASIM_SHARING_H
#define GPUWHISK_CUDASIM_SHARING_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpuwhisk::sim {

/** A kernel that runs. */
struct Running {
  /** Kernels of one owner (a context) take no more than `owner_cap` SMs together. */
  const void *owner;
  double owner_cap;
  double filled;     // SMs that its blocks would fill if there were enough of them.
  double demand;     // As many of these as its owner may have.
  double work;       // SM-ns of a reference SM; more than 0.
  double dram_bytes; // Of the whole kernel.
  double sensitivity = 1, pressure = 1; // Factors on those of a kernel that fills as much.
  // Results:
  double sms = 0;
  double rate = 0;   // Part of the kernel done per ns.
};

struct Capacity {
  double sms, speed;
  double bandwidth; // bytes per ns
};

/**
 * Sets what each kernel gets. Alone an owner's kernels share the SMs that it may have max–min fairly. Where the owners'
 * limits are more than there is, each kernel is slower beside those of others by the fitted contention (docs/gpu.md).
 * Then all that use memory slow down alike where together they ask for more bandwidth than there is (PROTEAN, section 3:
 * the sum of fractional bandwidths).
 */
void share(std::vector<Running *> &kernels, const Capacity &capacity);

} // namespace gpuwhisk::sim

#endif
