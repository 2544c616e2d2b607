#include "device.h"

#include <algorithm>

namespace gpuwhisk::nvml {
namespace {

std::string uuid_of(const Library &library, nvmlDevice_t device) {
  char text[NVML_DEVICE_UUID_V2_BUFFER_SIZE] = "";
  library.check(library.calls().uuid(device, text, sizeof text), "UUID");
  return text;
}

std::string name_of(const Library &library, nvmlDevice_t device) {
  char text[NVML_DEVICE_NAME_V2_BUFFER_SIZE] = "";
  library.check(library.calls().name(device, text, sizeof text), "name");
  return text;
}

/** FP32 lanes of one SM, by compute capability (CUDA programming guide, arithmetic throughput). */
unsigned cores_per_sm(int major, int minor) {
  if (major <= 5) return 128;
  if (major == 6) return minor == 0 ? 64 : 128;
  if (major == 7 || (major == 8 && minor == 0)) return 64;
  return 128;
}

/** NVML tells SMs only of MIG devices; of a whole GPU it tells cores. */
unsigned sm_count_of(const Library &library, nvmlDevice_t device) {
  unsigned cores = 0;
  int major = 0, minor = 0;
  library.check(library.calls().cores(device, &cores), "number of cores");
  library.check(library.calls().compute_capability(device, &major, &minor), "compute capability");
  return cores / cores_per_sm(major, minor);
}

bool is_exclusive(const Library &library, nvmlDevice_t device) {
  nvmlComputeMode_t mode = NVML_COMPUTEMODE_DEFAULT;
  nvmlReturn_t result = library.calls().compute_mode(device, &mode);
  if (result == NVML_ERROR_NOT_SUPPORTED) return false;
  library.check(result, "compute mode");
  return mode == NVML_COMPUTEMODE_EXCLUSIVE_PROCESS;
}

Device describe(const Library &library, nvmlDevice_t handle, unsigned index) {
  nvmlMemory_t memory{};
  library.check(library.calls().memory(handle, &memory), "memory");
  Device device{};
  device.handle = handle;
  device.index = index;
  device.uuid = uuid_of(library, handle);
  device.name = name_of(library, handle);
  device.sm_count = sm_count_of(library, handle);
  device.memory_mib = memory.total >> 20;
  device.mig = is_mig(library, handle);
  device.exclusive = is_exclusive(library, handle);
  if (device.mig) device.slices = list_slices(library, handle);
  return device;
}

/** `MIG 3g.20gb`, or a MIG device's full name, which ends in that. */
std::string profile_name(const std::string &name) {
  size_t at = name.rfind("MIG ");
  return at == std::string::npos ? name : name.substr(at + 4);
}

/** Root is told where an instance lies; others only how large it is. */
void place(const Library &library, nvmlDevice_t device, Slice &slice) {
  const Functions &nvml = library.calls();
  nvmlGpuInstance_t instance = nullptr;
  nvmlGpuInstanceInfo_t info{};
  if (!nvml.instance_by_id || nvml.instance_by_id(device, slice.instance, &instance) != NVML_SUCCESS) return;
  if (nvml.instance_info(instance, &info) != NVML_SUCCESS) return;
  slice.start_slot = static_cast<int>(info.placement.start);
  slice.slots = info.placement.size;
}

Slice describe_slice(const Library &library, nvmlDevice_t device, nvmlDevice_t mig) {
  nvmlDeviceAttributes_t attributes{};
  library.check(library.calls().attributes(mig, &attributes), "attributes of a MIG device");
  Slice slice{};
  slice.uuid = uuid_of(library, mig);
  slice.profile = profile_name(name_of(library, mig));
  slice.start_slot = -1;
  slice.slots = attributes.gpuInstanceSliceCount;
  slice.sm_count = attributes.multiprocessorCount;
  slice.memory_mib = attributes.memorySizeMB;
  library.check(library.calls().instance_id(mig, &slice.instance), "GPU instance of a MIG device");
  place(library, device, slice);
  return slice;
}

std::vector<nvmlGpuInstancePlacement_t> placements_of(const Library &library, nvmlDevice_t device, unsigned id) {
  unsigned count = 0;
  library.check(library.calls().placements(device, id, nullptr, &count), "placements of a profile");
  std::vector<nvmlGpuInstancePlacement_t> places(count);
  if (count > 0) library.check(library.calls().placements(device, id, places.data(), &count), "placements of a profile");
  places.resize(std::min<size_t>(count, places.size()));
  return places;
}

Profile describe_profile(const Library &library, nvmlDevice_t device, const nvmlGpuInstanceProfileInfo_v2_t &info) {
  Profile profile{};
  profile.name = profile_name(info.name);
  profile.id = info.id;
  profile.compute_slices = info.sliceCount;
  profile.sm_count = info.multiprocessorCount;
  profile.memory_mib = info.memorySizeMB;
  for (const auto &place : placements_of(library, device, info.id)) {
    profile.starts.push_back(place.start);
    profile.slots = place.size;
  }
  // Only root is told; others may look at what is there, and cut nothing.
  nvmlReturn_t result = library.calls().remaining(device, info.id, &profile.remaining);
  if (result == NVML_ERROR_NO_PERMISSION) profile.remaining = 0;
  else library.check(result, "remaining capacity of a profile");
  return profile;
}

} // namespace

bool is_mig(const Library &library, nvmlDevice_t device) {
  unsigned current = 0, pending = 0;
  if (!library.calls().mig_mode) return false;
  nvmlReturn_t result = library.calls().mig_mode(device, &current, &pending);
  if (result == NVML_ERROR_NOT_SUPPORTED) return false;
  library.check(result, "MIG mode");
  return current == 1;
}

std::vector<Device> list_devices(const Library &library) {
  unsigned count = 0;
  library.check(library.calls().count(&count), "number of devices");
  std::vector<Device> devices;
  for (unsigned index = 0; index < count; index++) {
    nvmlDevice_t handle = nullptr;
    try {
      library.check(library.calls().by_index(index, &handle), "device");
      devices.push_back(describe(library, handle, index));
    } catch (const Failure &failure) {
      if (failure.code != NVML_ERROR_GPU_IS_LOST) throw;
    }
  }
  return devices;
}

nvmlDevice_t find_device(const Library &library, const std::string &uuid) {
  nvmlDevice_t device = nullptr;
  library.check(library.calls().by_uuid(uuid.c_str(), &device), uuid.c_str());
  return device;
}

std::vector<Slice> list_slices(const Library &library, nvmlDevice_t device) {
  const Functions &nvml = library.calls();
  unsigned most = 0;
  library.check(nvml.max_mig_devices(device, &most), "number of MIG devices");
  std::vector<Slice> slices;
  for (unsigned index = 0; index < most; index++) {
    nvmlDevice_t mig = nullptr;
    nvmlReturn_t result = nvml.mig_device(device, index, &mig);
    if (result == NVML_ERROR_NOT_FOUND) continue;
    library.check(result, "MIG device");
    slices.push_back(describe_slice(library, device, mig));
  }
  return slices;
}

std::vector<Profile> list_profiles(const Library &library, nvmlDevice_t device) {
  const Functions &nvml = library.calls();
  std::vector<Profile> profiles;
  if (!nvml.profile || !is_mig(library, device)) return profiles;
  for (unsigned number = 0;; number++) {
    nvmlGpuInstanceProfileInfo_v2_t info{};
    info.version = NVML_STRUCT_VERSION(nvmlGpuInstanceProfileInfo_v2_t, 2);
    nvmlReturn_t result = nvml.profile(device, number, &info);
    if (result == NVML_ERROR_INVALID_ARGUMENT) return profiles;
    if (result == NVML_ERROR_NOT_SUPPORTED) continue;
    library.check(result, "MIG profile");
    profiles.push_back(describe_profile(library, device, info));
  }
}

} // namespace gpuwhisk::nvml
