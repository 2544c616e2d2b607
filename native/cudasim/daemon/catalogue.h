// The GPUs that can be stood in for, as data.
#ifndef GPUWHISK_CUDASIM_CATALOGUE_H
#define GPUWHISK_CUDASIM_CATALOGUE_H

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace gpuwhisk::sim {

/** A way to cut a MIG GPU. */
struct Profile {
  const char *name;
  uint32_t id; // As nvidia-smi numbers them.
  uint32_t slots, compute_slices, sm_count;
  double memory_gib;
  std::vector<uint32_t> starts;
  uint32_t maximum;
  bool media_extensions = false;
};

struct Model {
  const char *type, *name;
  uint32_t sm_count;
  double memory_gib, bandwidth_gb_s, pcie_gb_s, l2_mib;
  /** Dense FP16 tensor throughput of an SM, as a multiple of the A100's: declared costs are for an A100. */
  double sm_speed;
  uint32_t major, minor, sm_clock_mhz, memory_clock_mhz, idle_w, power_limit_w;
  /** Device memory that a context takes, MiB: of a process of its own, and of an MPS client. */
  uint32_t context_mib, mps_context_mib;
  bool mig_resets, has_gpm;
  std::vector<Profile> profiles; // Empty: no MIG.
};

/** Slots of memory of a MIG GPU. */
constexpr uint32_t memory_slots = 8;
/** Slices of SMs of a MIG GPU. */
constexpr uint32_t compute_slices = 7;

/** The model of a type (`a100-40`), or null. */
const Model *find_model(std::string_view type);

std::span<const Model> all_models();

} // namespace gpuwhisk::sim

#endif
