#include "geometry.h"

#include <algorithm>

namespace gpuwhisk::nvml {
namespace {

void require_mig(const Library &library) {
  const Functions &nvml = library.calls();
  if (!nvml.set_mig_mode || !nvml.create_instance_at || !nvml.create_compute || !nvml.compute_profile)
    throw Failure(NVML_ERROR_FUNCTION_NOT_FOUND, "This driver's NVML cannot cut devices.");
}

Profile find_profile(const Library &library, nvmlDevice_t device, const std::string &name) {
  std::vector<Profile> profiles = list_profiles(library, device);
  for (const Profile &profile : profiles)
    if (profile.name == name) return profile;
  throw Failure(NVML_ERROR_NOT_FOUND, profiles.empty() ? "MIG is off on this device." : "There is no profile " + name + ".");
}

/** The compute profile that takes as many slices as the instance has. */
unsigned whole_profile(const Library &library, nvmlGpuInstance_t instance, unsigned slices) {
  for (unsigned number = 0;; number++) {
    nvmlComputeInstanceProfileInfo_v2_t info{};
    info.version = NVML_STRUCT_VERSION(nvmlComputeInstanceProfileInfo_v2_t, 2);
    nvmlReturn_t result = library.calls().compute_profile(instance, number, 0, &info);
    if (result == NVML_ERROR_NOT_SUPPORTED) continue;
    library.check(result, "compute profile of the whole instance");
    if (info.sliceCount == slices) return info.id;
  }
}

nvmlGpuInstance_t create_instance(const Library &library, nvmlDevice_t device, const Profile &profile,
                                  std::optional<unsigned> start_slot) {
  nvmlGpuInstance_t instance = nullptr;
  if (!start_slot) {
    library.check(library.calls().create_instance(device, profile.id, &instance), profile.name.c_str());
    return instance;
  }
  nvmlGpuInstancePlacement_t place{*start_slot, profile.slots};
  library.check(library.calls().create_instance_at(device, profile.id, &place, &instance), profile.name.c_str());
  return instance;
}

Slice slice_in(const Library &library, nvmlDevice_t device, nvmlGpuInstance_t instance) {
  nvmlGpuInstanceInfo_t info{};
  library.check(library.calls().instance_info(instance, &info), "new GPU instance");
  for (const Slice &slice : list_slices(library, device))
    if (slice.instance == info.id) return slice;
  throw Failure(NVML_ERROR_NOT_FOUND, "The new MIG device does not appear.");
}

} // namespace

void set_mig(const Library &library, nvmlDevice_t device, bool enabled) {
  require_mig(library);
  // Turning it off takes the instances with it, and is refused while there are some.
  if (!enabled && is_mig(library, device))
    for (const Slice &slice : list_slices(library, device)) destroy_slice(library, device, slice.uuid);
  nvmlReturn_t activation = NVML_SUCCESS;
  library.check(library.calls().set_mig_mode(device, enabled ? 1 : 0, &activation), "MIG mode");
  library.check(activation, "MIG mode, which was set but is not in force");
}

Slice create_slice(const Library &library, nvmlDevice_t device, const std::string &name,
                   std::optional<unsigned> start_slot) {
  require_mig(library);
  Profile profile = find_profile(library, device, name);
  nvmlGpuInstance_t instance = create_instance(library, device, profile, start_slot);
  nvmlComputeInstance_t compute = nullptr;
  try {
    unsigned whole = whole_profile(library, instance, profile.compute_slices);
    library.check(library.calls().create_compute(instance, whole, &compute), "compute instance");
    return slice_in(library, device, instance);
  } catch (...) {
    // Half a slice is of no use to anybody; the first failure is the one to tell.
    if (compute) library.calls().destroy_compute(compute);
    library.calls().destroy_instance(instance);
    throw;
  }
}

void destroy_slice(const Library &library, nvmlDevice_t device, const std::string &uuid) {
  require_mig(library);
  const Functions &nvml = library.calls();
  for (const Slice &slice : list_slices(library, device)) {
    if (slice.uuid != uuid) continue;
    nvmlGpuInstance_t instance = nullptr;
    nvmlComputeInstance_t compute = nullptr;
    library.check(nvml.instance_by_id(device, slice.instance, &instance), "GPU instance");
    // Ours have one compute instance, whose id is 0; those of other programs may have more, and is refused below.
    nvmlReturn_t found = nvml.compute_by_id(instance, 0, &compute);
    if (found == NVML_SUCCESS) library.check(nvml.destroy_compute(compute), "compute instance");
    else if (found != NVML_ERROR_NOT_FOUND) library.fail(found, "compute instance");
    return library.check(nvml.destroy_instance(instance), "GPU instance");
  }
  throw Failure(NVML_ERROR_NOT_FOUND, "There is no MIG device " + uuid + ".");
}

void set_exclusive(const Library &library, nvmlDevice_t device, bool exclusive) {
  nvmlComputeMode_t mode = exclusive ? NVML_COMPUTEMODE_EXCLUSIVE_PROCESS : NVML_COMPUTEMODE_DEFAULT;
  library.check(library.calls().set_compute_mode(device, mode), "compute mode");
}

} // namespace gpuwhisk::nvml
