// A stood-in GPU: its geometry, its memory and its counters.
#ifndef GPUWHISK_CUDASIM_GPU_H
#define GPUWHISK_CUDASIM_GPU_H

#include "../wire.h"
#include "catalogue.h"

#include <list>
#include <memory>
#include <optional>
#include <string>

namespace gpuwhisk::sim {

/** What has been used, since the daemon's start. Times are of the simulated device, ns. */
struct Usage {
  double busy_ns = 0, sm_ns = 0, dram_bytes = 0;
};

/** What contexts run on: a whole device, or a MIG instance of it. */
struct Partition {
  uint32_t sm_count = 0;
  uint64_t memory_bytes = 0;
  double bandwidth = 0; // bytes per ns
  double l2_bytes = 0;
  uint64_t used_bytes = 0;
  uint32_t contexts = 0;
  Usage usage;
};

struct Instance : Partition {
  uint32_t id = 0;
  const Profile *profile = nullptr;
  uint32_t start_slot = 0;
  std::string compute_uuid; // Empty: without a compute instance.
};

/** An operation that inventory asks for cannot be done; `status` is the answer. */
struct Refusal {
  gwsim_status status;
};

class Gpu {
public:
  Gpu(const Model &model, uint32_t index, uint64_t seed);

  const Model &model() const { return model_; }
  uint32_t index() const { return index_; }
  const std::string &uuid() const { return uuid_; }

  Partition &whole() { return whole_; }
  /** Where contexts of an instance run, or of the device (-1). Null: none is there, or not of this mode. */
  Partition *partition(int32_t instance);
  std::list<Instance> &instances() { return instances_; }
  bool mig_enabled() const { return mig_enabled_; }

  /** Throw Refusal. */
  void set_mig(bool enabled);
  void set_compute_mode(int32_t mode);
  Instance &create_instance(uint32_t profile_id, int32_t start_slot);
  void destroy_instance(uint32_t id);
  Instance &create_compute(uint32_t id);
  void destroy_compute(uint32_t id);

  /** Of a profile, that the free slots still take. */
  uint32_t remaining(const Profile &profile) const;

  uint64_t used_bytes() const;
  uint32_t contexts() const;
  Usage usage() const;

  gwsim_device describe() const;
  gwsim_slice describe(const Instance &instance) const;
  gwsim_profiles describe_profiles() const;

  uint32_t compute_mode = GWSIM_DEFAULT_MODE;
  bool lost = false;
  uint32_t last_xid = 0;
  uint64_t clock_event_reasons = 0;
  /** Bytes over PCIe. */
  double to_device_bytes = 0, to_host_bytes = 0;

private:
  Instance &find_instance(uint32_t id);
  std::optional<uint32_t> free_start(const Profile &profile, int32_t wanted) const;
  std::string make_uuid(const char *prefix, uint64_t number) const;
  void require_present() const;

  const Model &model_;
  uint32_t index_;
  uint64_t seed_;
  std::string uuid_;
  Partition whole_;
  bool mig_enabled_ = false;
  std::list<Instance> instances_; // Contexts point into it.
  uint32_t last_instance_ = 0;
  uint64_t last_compute_ = 0;
  Usage gone_; // Of instances that were destroyed.
};

/** Copies text into a fixed field, cut off if need be and NUL-ended. */
template <size_t size> void copy_text(char (&field)[size], std::string_view text) {
  size_t length = std::min(size - 1, text.size());
  text.copy(field, length);
  field[length] = '\0';
}

} // namespace gpuwhisk::sim

#endif
