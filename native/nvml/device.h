// What a machine's GPUs are, and how they are cut.
#pragma once

#include "library.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gpuwhisk::nvml {

struct Slice {
  std::string uuid;    // MIG-…
  std::string profile; // 3g.20gb
  int start_slot;      // -1: only root is told.
  unsigned slots;
  unsigned sm_count;
  uint64_t memory_mib;
  unsigned instance; // Id of its GPU instance.
};

struct Device {
  nvmlDevice_t handle;
  unsigned index;
  std::string uuid, name;
  unsigned sm_count;
  uint64_t memory_mib;
  bool mig;
  bool exclusive;
  std::vector<Slice> slices;
};

struct Profile {
  std::string name;
  unsigned id;
  unsigned slots;
  unsigned compute_slices;
  unsigned sm_count;
  uint64_t memory_mib;
  std::vector<unsigned> starts;
  unsigned remaining;
};

/** Every device that answers; a lost one is left out. */
std::vector<Device> list_devices(const Library &library);

/** The device of that UUID; throws Failure NVML_ERROR_NOT_FOUND. */
nvmlDevice_t find_device(const Library &library, const std::string &uuid);

bool is_mig(const Library &library, nvmlDevice_t device);
std::vector<Slice> list_slices(const Library &library, nvmlDevice_t device);

/** Empty where the device cannot be cut, or not while MIG is off. */
std::vector<Profile> list_profiles(const Library &library, nvmlDevice_t device);

} // namespace gpuwhisk::nvml
