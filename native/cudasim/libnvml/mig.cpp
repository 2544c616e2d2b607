// MIG: modes, profiles, GPU instances and their one compute instance.
#include "session.h"

#include <algorithm>
#include <cstring>

using namespace gpuwhisk::sim;

namespace {

/** The number of the compute profile of so many slices, as NVML numbers them: its id is the same here. */
unsigned compute_profile_of(unsigned slices) {
  if (slices <= 4) return slices - 1;
  return slices == 7 ? 4 : 5;
}

nvmlReturn_t profiles_of(nvmlDevice_t device, gwsim_profiles *profiles) {
  if (device == nullptr || device->instance >= 0) return NVML_ERROR_INVALID_ARGUMENT;
  return ask(GWSIM_PROFILES, target_of(device), profiles);
}

nvmlReturn_t find_profile(nvmlDevice_t device, unsigned id, gwsim_profile *profile) {
  gwsim_profiles all{};
  nvmlReturn_t result = profiles_of(device, &all);
  if (result != NVML_SUCCESS) return result;
  for (uint32_t i = 0; i < all.count; i++) {
    if (all.profiles[i].id != id) continue;
    *profile = all.profiles[i];
    return NVML_SUCCESS;
  }
  return NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t create(nvmlDevice_t device, unsigned profile, int32_t start, nvmlGpuInstance_t *instance) {
  if (device == nullptr || device->instance >= 0) return NVML_ERROR_INVALID_ARGUMENT;
  gwsim_target target = target_of(device);
  target.profile = profile;
  target.value = start;
  gwsim_slice slice{};
  nvmlReturn_t result = ask(GWSIM_CREATE_INSTANCE, target, &slice);
  if (result == NVML_SUCCESS) *instance = instance_handle(device->index, slice.instance);
  return result;
}

/** A MIG device is a GPU instance with a compute instance. */
nvmlReturn_t mig_slice(nvmlDevice_t device, gwsim_slice *slice) {
  if (device == nullptr || device->instance < 0) return NVML_ERROR_INVALID_ARGUMENT;
  return find_slice(device->index, device->instance, slice);
}

gwsim_target target_of_instance(uint32_t device, uint32_t instance) { return {device, 0, instance, 0, 0}; }

} // namespace

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t handle, unsigned int *current, unsigned int *pending) {
  if (handle == nullptr || handle->instance >= 0) return NVML_ERROR_INVALID_ARGUMENT;
  gwsim_device device{};
  nvmlReturn_t result = ask(GWSIM_DEVICE, target_of(handle), &device);
  if (result == NVML_SUCCESS && !device.mig_capable) return NVML_ERROR_NOT_SUPPORTED;
  *current = *pending = device.mig_enabled;
  return result;
}

nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_t handle, unsigned int mode, nvmlReturn_t *activation) {
  if (handle == nullptr || handle->instance >= 0 || mode > 1) return NVML_ERROR_INVALID_ARGUMENT;
  gwsim_target target = target_of(handle);
  target.value = static_cast<int32_t>(mode);
  nvmlReturn_t result = tell(GWSIM_SET_MIG, target);
  *activation = NVML_SUCCESS;
  if (result != NVML_ERROR_IN_USE) return result;
  *activation = NVML_ERROR_IN_USE; // Set, and in force once no process uses the device; here it is not set.
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count) {
  if (device == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *count = GWSIM_MAX_SLICES - 1;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t *mig) {
  if (device == nullptr || device->instance >= 0) return NVML_ERROR_INVALID_ARGUMENT;
  gwsim_slices all{};
  nvmlReturn_t result = ask(GWSIM_SLICES, target_of(device), &all);
  if (result != NVML_SUCCESS) return result;
  for (uint32_t i = 0; i < all.count; i++) {
    if (!all.slices[i].has_compute || index-- != 0) continue;
    *mig = device_handle(device->index, static_cast<int32_t>(all.slices[i].instance));
    return NVML_SUCCESS;
  }
  return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig, nvmlDevice_t *device) {
  if (mig == nullptr || mig->instance < 0) return NVML_ERROR_INVALID_ARGUMENT;
  *device = device_handle(mig->index);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t mig, unsigned int *id) {
  gwsim_slice slice{};
  nvmlReturn_t result = mig_slice(mig, &slice);
  *id = slice.instance;
  return result;
}

nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t mig, unsigned int *id) {
  gwsim_slice slice{};
  *id = 0;
  return mig_slice(mig, &slice);
}

nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t mig, nvmlDeviceAttributes_t *attributes) {
  if (mig != nullptr && mig->instance < 0) return NVML_ERROR_NOT_SUPPORTED;
  gwsim_slice slice{};
  nvmlReturn_t result = mig_slice(mig, &slice);
  *attributes = {};
  attributes->multiprocessorCount = slice.sm_count;
  attributes->gpuInstanceSliceCount = slice.compute_slices;
  attributes->computeInstanceSliceCount = slice.compute_slices;
  attributes->memorySizeMB = slice.memory_bytes >> 20;
  return result;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t device, unsigned int number,
                                                  nvmlGpuInstanceProfileInfo_v2_t *info) {
  if (info->version != NVML_STRUCT_VERSION(nvmlGpuInstanceProfileInfo_v2_t, 2))
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  gwsim_profiles all{};
  nvmlReturn_t result = profiles_of(device, &all);
  if (result != NVML_SUCCESS) return result;
  if (number >= GWSIM_MAX_PROFILES) return NVML_ERROR_INVALID_ARGUMENT;
  if (number >= all.count) return NVML_ERROR_NOT_SUPPORTED;
  const gwsim_profile &profile = all.profiles[number];
  info->id = profile.id;
  info->isP2pSupported = 0;
  info->sliceCount = profile.compute_slices;
  info->instanceCount = profile.maximum;
  info->multiprocessorCount = profile.sm_count;
  info->copyEngineCount = info->decoderCount = info->encoderCount = info->jpegCount = info->ofaCount = 0;
  info->memorySizeMB = profile.memory_bytes >> 20;
  return copy_text(std::string("MIG ") + profile.name, info->name, sizeof info->name);
}

nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements_v2(nvmlDevice_t device, unsigned int id,
                                                           nvmlGpuInstancePlacement_t *placements, unsigned int *count) {
  gwsim_profile profile{};
  nvmlReturn_t result = find_profile(device, id, &profile);
  if (result != NVML_SUCCESS) return result;
  *count = profile.start_count;
  for (uint32_t i = 0; placements != nullptr && i < profile.start_count; i++)
    placements[i] = {profile.starts[i], profile.slots};
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t device, unsigned int id, unsigned int *count) {
  gwsim_profile profile{};
  nvmlReturn_t result = find_profile(device, id, &profile);
  *count = profile.remaining;
  return result;
}

nvmlReturn_t nvmlDeviceCreateGpuInstance(nvmlDevice_t device, unsigned int id, nvmlGpuInstance_t *instance) {
  return create(device, id, -1, instance);
}

nvmlReturn_t nvmlDeviceCreateGpuInstanceWithPlacement(nvmlDevice_t device, unsigned int id,
                                                      const nvmlGpuInstancePlacement_t *placement,
                                                      nvmlGpuInstance_t *instance) {
  return create(device, id, static_cast<int32_t>(placement->start), instance);
}

nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned int id, nvmlGpuInstance_t *instance) {
  if (device == nullptr || device->instance >= 0) return NVML_ERROR_INVALID_ARGUMENT;
  gwsim_slice slice{};
  nvmlReturn_t result = find_slice(device->index, static_cast<int32_t>(id), &slice);
  if (result == NVML_SUCCESS) *instance = instance_handle(device->index, id);
  return result;
}

nvmlReturn_t nvmlGpuInstanceDestroy(nvmlGpuInstance_t instance) {
  if (instance == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  return tell(GWSIM_DESTROY_INSTANCE, target_of_instance(instance->device, instance->instance));
}

nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t instance, nvmlGpuInstanceInfo_t *info) {
  if (instance == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  gwsim_slice slice{};
  nvmlReturn_t result = find_slice(instance->device, static_cast<int32_t>(instance->instance), &slice);
  *info = {device_handle(instance->device), slice.instance, slice.profile_id, {slice.start_slot, slice.slots}};
  return result;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfoV(nvmlGpuInstance_t instance, unsigned int number,
                                                           unsigned int engines,
                                                           nvmlComputeInstanceProfileInfo_v2_t *info) {
  if (instance == nullptr || engines != 0 || number > 8) return NVML_ERROR_INVALID_ARGUMENT;
  if (info->version != NVML_STRUCT_VERSION(nvmlComputeInstanceProfileInfo_v2_t, 2))
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  gwsim_slice slice{};
  nvmlReturn_t result = find_slice(instance->device, static_cast<int32_t>(instance->instance), &slice);
  if (result != NVML_SUCCESS) return result;
  // Here an instance is not cut further.
  if (number != compute_profile_of(slice.compute_slices)) return NVML_ERROR_NOT_SUPPORTED;
  unsigned version = info->version;
  *info = {};
  info->version = version;
  info->id = number;
  info->sliceCount = slice.compute_slices;
  info->instanceCount = 1;
  info->multiprocessorCount = slice.sm_count;
  return copy_text(std::string("MIG ") + slice.profile, info->name, sizeof info->name);
}

nvmlReturn_t nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_t instance, unsigned int profile,
                                                  nvmlComputeInstance_t *compute) {
  if (instance == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  gwsim_slice slice{};
  nvmlReturn_t result = find_slice(instance->device, static_cast<int32_t>(instance->instance), &slice);
  if (result != NVML_SUCCESS) return result;
  if (profile != compute_profile_of(slice.compute_slices)) return NVML_ERROR_NOT_SUPPORTED;
  result = ask(GWSIM_CREATE_COMPUTE, target_of_instance(instance->device, instance->instance), &slice);
  if (result == NVML_SUCCESS) *compute = compute_handle(instance->device, instance->instance);
  return result;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t instance, unsigned int id,
                                                   nvmlComputeInstance_t *compute) {
  if (instance == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  gwsim_slice slice{};
  nvmlReturn_t result = find_slice(instance->device, static_cast<int32_t>(instance->instance), &slice);
  if (result != NVML_SUCCESS) return result;
  if (id != 0 || !slice.has_compute) return NVML_ERROR_NOT_FOUND;
  *compute = compute_handle(instance->device, instance->instance);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlComputeInstanceDestroy(nvmlComputeInstance_t compute) {
  if (compute == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  return tell(GWSIM_DESTROY_COMPUTE, target_of_instance(compute->device, compute->instance));
}
