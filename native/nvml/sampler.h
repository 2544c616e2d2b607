// The figures of all devices at one moment.
#pragma once

#include "device.h"

#include <map>
#include <optional>

namespace gpuwhisk::nvml {

struct Process {
  unsigned pid;
  uint64_t memory_mib;
  std::string slice; // UUID, or empty.
  std::optional<double> utilisation;
};

/** Fractions are 0–1. Empty: the chip, or the mode, does not tell. */
struct Sample {
  std::string uuid;
  uint64_t used_memory_mib;
  std::optional<double> utilisation, sm_activity, dram_activity, temperature_c, power_w;
  std::vector<std::string> clock_events;
  std::vector<Process> processes;
};

/** Keeps what GPM needs between two samples: its figures are of the time since the one before. */
class Sampler {
public:
  explicit Sampler(const Library &library) : library_(library) {}
  ~Sampler();
  Sampler(const Sampler &) = delete;
  Sampler &operator=(const Sampler &) = delete;

  /** Looks at every device; a lost one is left out. */
  std::vector<Sample> sample();

private:
  struct Counters {
    bool supported = false;
    nvmlGpmSample_t before = nullptr, now = nullptr;
  };
  Sample sample_device(const Device &device);
  void add_rates(const Device &device, Sample &sample);
  void add_activity(const Device &device, Sample &sample);
  void open_counters(const Device &device, Counters &counters);
  void close_counters(const std::string &uuid);

  const Library &library_;
  std::vector<Device> devices_;
  std::map<std::string, Counters> counters_;
  std::map<std::string, unsigned long long> last_seen_; // When processes were busy, by device.
};

} // namespace gpuwhisk::nvml
