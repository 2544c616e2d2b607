// What a device's own sensors would show, made from its counters about every 100 ms.
#ifndef GPUWHISK_CUDASIM_SAMPLER_H
#define GPUWHISK_CUDASIM_SAMPLER_H

#include "gpu.h"

#include <deque>
#include <map>

namespace gpuwhisk::sim {

class Sampler {
public:
  /** Takes note of the counters at `now_ns` of simulated time. */
  void sample(const std::vector<std::unique_ptr<Gpu>> &gpus, double now_ns);
  uint64_t now_ns() const { return static_cast<uint64_t>(now_ns_); }
  /** Sets utilisation of about the last second, power, temperature and clocks. */
  void fill(const Gpu &gpu, gwsim_device_status &status) const;

private:
  struct Reading {
    double at_ns;
    Usage usage;
  };
  struct Sensors {
    std::deque<Reading> readings;
    double temperature_c = 30;
  };
  double now_ns_ = 0;
  std::map<const Gpu *, Sensors> sensors_;
};

} // namespace gpuwhisk::sim

#endif
