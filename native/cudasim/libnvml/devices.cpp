// The system and its devices.
#include "session.h"

#include <algorithm>
#include <cstring>
#include <vector>

using namespace gpuwhisk::sim;

namespace {

/** As the binding's table has them: a client divides the cores by this. */
unsigned cores_per_sm(const gwsim_device &device) {
  bool is_datacentre = device.major == 7 || (device.major == 8 && device.minor == 0);
  return is_datacentre ? 64 : 128;
}

nvmlReturn_t describe(nvmlDevice_t handle, gwsim_device *device) {
  if (handle == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  nvmlReturn_t result = ask(GWSIM_DEVICE, target_of(handle), device);
  return result == NVML_SUCCESS && device->lost ? NVML_ERROR_GPU_IS_LOST : result;
}

nvmlReturn_t status_of(nvmlDevice_t handle, gwsim_device_status *status) {
  if (handle == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  nvmlReturn_t result = ask(GWSIM_STATUS, target_of(handle), status);
  return result == NVML_SUCCESS && status->lost ? NVML_ERROR_GPU_IS_LOST : result;
}

/** Total and used bytes of a device, or of a MIG device's slice. */
nvmlReturn_t memory_of(nvmlDevice_t handle, unsigned long long *total, unsigned long long *used) {
  gwsim_device device{};
  gwsim_device_status status{};
  nvmlReturn_t result = describe(handle, &device);
  if (result == NVML_SUCCESS && handle->instance < 0) result = status_of(handle, &status);
  if (result != NVML_SUCCESS) return result;
  gwsim_slice slice{};
  if (handle->instance >= 0) result = find_slice(handle->index, handle->instance, &slice);
  *total = handle->instance < 0 ? device.memory_bytes : slice.memory_bytes;
  *used = handle->instance < 0 ? status.used_bytes : slice.used_bytes;
  return result;
}

nvmlReturn_t list_processes(nvmlDevice_t handle, bool of_mps, unsigned int *count, nvmlProcessInfo_t *infos) {
  if (handle == nullptr || count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  std::vector<nvmlProcessInfo_t> found;
  gwsim_target target = target_of(handle);
  gwsim_processes part{};
  do {
    nvmlReturn_t result = ask(GWSIM_PROCESSES, target, &part);
    if (result != NVML_SUCCESS) return result;
    for (uint32_t i = 0; i < part.count; i++) {
      const gwsim_process &one = part.processes[i];
      if ((one.is_mps != 0) != of_mps || (handle->instance >= 0 && one.instance != handle->instance)) continue;
      unsigned instance = one.instance < 0 ? NVML_NO_INSTANCE : static_cast<unsigned>(one.instance);
      unsigned compute = one.instance < 0 ? NVML_NO_INSTANCE : 0;
      found.push_back({static_cast<unsigned>(one.pid), one.used_bytes, instance, compute});
    }
    target.from += part.count;
  } while (part.count > 0 && target.from < part.total);
  unsigned room = *count;
  *count = found.size();
  if (infos == nullptr || room < found.size()) return found.empty() ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
  std::ranges::copy(found, infos);
  return NVML_SUCCESS;
}

} // namespace

nvmlReturn_t nvmlInit_v2() { return begin(); }

nvmlReturn_t nvmlShutdown() { return end(); }

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length) {
  return copy_text(GWSIM_DRIVER_VERSION, version, length);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version) {
  *version = GWSIM_CUDA_VERSION;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count) {
  gwsim_node all{};
  nvmlReturn_t result = node(&all);
  *count = all.device_count;
  return result;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) {
  gwsim_node all{};
  nvmlReturn_t result = node(&all);
  if (result != NVML_SUCCESS) return result;
  if (index >= all.device_count) return NVML_ERROR_INVALID_ARGUMENT;
  *device = device_handle(index);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *handle) {
  gwsim_node all{};
  nvmlReturn_t result = node(&all);
  for (unsigned index = 0; result == NVML_SUCCESS && index < all.device_count; index++) {
    gwsim_device device{};
    result = ask(GWSIM_DEVICE, gwsim_target{index, 0, 0, 0, 0}, &device);
    if (result != NVML_SUCCESS || std::strcmp(device.uuid, uuid) != 0) continue;
    *handle = device_handle(index);
    return device.lost ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
  }
  return result == NVML_SUCCESS ? NVML_ERROR_NOT_FOUND : result;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t handle, char *uuid, unsigned int length) {
  gwsim_device device{};
  gwsim_slice slice{};
  nvmlReturn_t result = describe(handle, &device);
  if (result == NVML_SUCCESS && handle->instance >= 0) result = find_slice(handle->index, handle->instance, &slice);
  if (result != NVML_SUCCESS) return result;
  return copy_text(handle->instance < 0 ? device.uuid : slice.uuid, uuid, length);
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t handle, char *name, unsigned int length) {
  gwsim_device device{};
  gwsim_slice slice{};
  nvmlReturn_t result = describe(handle, &device);
  if (result == NVML_SUCCESS && handle->instance >= 0) result = find_slice(handle->index, handle->instance, &slice);
  if (result != NVML_SUCCESS) return result;
  std::string suffix = handle->instance < 0 ? "" : std::string(" MIG ") + slice.profile;
  return copy_text(device.name + suffix, name, length);
}

nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t handle, unsigned int *cores) {
  gwsim_device device{};
  nvmlReturn_t result = describe(handle, &device);
  *cores = device.sm_count * cores_per_sm(device);
  return result;
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t handle, int *major, int *minor) {
  gwsim_device device{};
  nvmlReturn_t result = describe(handle, &device);
  *major = static_cast<int>(device.major);
  *minor = static_cast<int>(device.minor);
  return result;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t handle, nvmlMemory_v2_t *memory) {
  if (memory->version != NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  nvmlReturn_t result = memory_of(handle, &memory->total, &memory->used);
  memory->reserved = 0;
  memory->free = memory->total - memory->used;
  return result;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t handle, nvmlMemory_t *memory) {
  nvmlReturn_t result = memory_of(handle, &memory->total, &memory->used);
  memory->free = memory->total - memory->used;
  return result;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t handle, nvmlUtilization_t *utilization) {
  gwsim_device device{};
  gwsim_device_status status{};
  nvmlReturn_t result = describe(handle, &device);
  if (result == NVML_SUCCESS) result = status_of(handle, &status);
  if (result != NVML_SUCCESS) return result;
  if (device.mig_enabled) return NVML_ERROR_NOT_SUPPORTED; // As on real ones.
  *utilization = {status.utilisation_percent, status.memory_utilisation_percent};
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t handle, nvmlTemperatureSensors_t, unsigned int *celsius) {
  gwsim_device_status status{};
  nvmlReturn_t result = status_of(handle, &status);
  *celsius = status.temperature_c;
  return result;
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t handle, unsigned int *milliwatts) {
  gwsim_device_status status{};
  nvmlReturn_t result = status_of(handle, &status);
  *milliwatts = status.power_mw;
  return result;
}

nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t handle, unsigned long long *reasons) {
  gwsim_device_status status{};
  nvmlReturn_t result = status_of(handle, &status);
  *reasons = status.clock_event_reasons;
  return result;
}

nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t handle, unsigned long long *reasons) {
  return nvmlDeviceGetCurrentClocksEventReasons(handle, reasons);
}

nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t handle, nvmlComputeMode_t *mode) {
  gwsim_device device{};
  nvmlReturn_t result = describe(handle, &device);
  *mode = static_cast<nvmlComputeMode_t>(device.compute_mode);
  return result;
}

nvmlReturn_t nvmlDeviceSetComputeMode(nvmlDevice_t handle, nvmlComputeMode_t mode) {
  if (handle == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  gwsim_target target = target_of(handle);
  target.value = mode;
  return tell(GWSIM_SET_COMPUTE_MODE, target);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos) {
  return list_processes(device, false, count, infos);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
                                                        nvmlProcessInfo_t *infos) {
  return list_processes(device, true, count, infos);
}
