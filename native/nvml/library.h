// NVIDIA's management library, loaded when it is asked for: a machine without it runs the same program.
#pragma once

#include "../cudasim/include/nvml.h"

#include <stdexcept>
#include <string>

namespace gpuwhisk::nvml {

/** The library's answer to a call that it could not do; `code` is an nvmlReturn_t. */
class Failure : public std::runtime_error {
public:
  Failure(int code, const std::string &message) : std::runtime_error(message), code(code) {}
  const int code;
};

/** The functions by their newest name that this project knows. Those under "may lack" are null in older libraries. */
struct Functions {
  decltype(&nvmlInit_v2) init;
  decltype(&nvmlShutdown) shutdown;
  decltype(&nvmlErrorString) error_string;
  decltype(&nvmlSystemGetDriverVersion) driver_version;
  decltype(&nvmlSystemGetCudaDriverVersion_v2) cuda_version;
  decltype(&nvmlDeviceGetCount_v2) count;
  decltype(&nvmlDeviceGetHandleByIndex_v2) by_index;
  decltype(&nvmlDeviceGetHandleByUUID) by_uuid;
  decltype(&nvmlDeviceGetUUID) uuid;
  decltype(&nvmlDeviceGetName) name;
  decltype(&nvmlDeviceGetNumGpuCores) cores;
  decltype(&nvmlDeviceGetCudaComputeCapability) compute_capability;
  decltype(&nvmlDeviceGetMemoryInfo) memory;
  decltype(&nvmlDeviceGetUtilizationRates) utilization;
  decltype(&nvmlDeviceGetTemperature) temperature;
  decltype(&nvmlDeviceGetPowerUsage) power;
  decltype(&nvmlDeviceGetCurrentClocksEventReasons) clock_events;
  decltype(&nvmlDeviceGetComputeMode) compute_mode;
  decltype(&nvmlDeviceSetComputeMode) set_compute_mode;
  decltype(&nvmlDeviceGetComputeRunningProcesses_v3) processes;
  decltype(&nvmlEventSetCreate) event_set_create;
  decltype(&nvmlEventSetFree) event_set_free;
  decltype(&nvmlEventSetWait_v2) event_set_wait;
  decltype(&nvmlDeviceGetSupportedEventTypes) supported_events;
  decltype(&nvmlDeviceRegisterEvents) register_events;
  // May lack:
  decltype(&nvmlDeviceGetAttributes_v2) attributes;
  decltype(&nvmlDeviceGetMemoryInfo_v2) memory_v2;
  decltype(&nvmlDeviceGetMPSComputeRunningProcesses_v3) mps_processes;
  decltype(&nvmlDeviceGetProcessUtilization) process_rates;
  decltype(&nvmlGpmQueryDeviceSupport) gpm_support;
  decltype(&nvmlGpmSampleAlloc) gpm_alloc;
  decltype(&nvmlGpmSampleFree) gpm_free;
  decltype(&nvmlGpmSampleGet) gpm_get;
  decltype(&nvmlGpmMetricsGet) gpm_metrics;
  decltype(&nvmlDeviceGetMigMode) mig_mode;
  decltype(&nvmlDeviceSetMigMode) set_mig_mode;
  decltype(&nvmlDeviceGetMaxMigDeviceCount) max_mig_devices;
  decltype(&nvmlDeviceGetMigDeviceHandleByIndex) mig_device;
  decltype(&nvmlDeviceGetGpuInstanceId) instance_id;
  decltype(&nvmlDeviceGetComputeInstanceId) compute_instance_id;
  decltype(&nvmlDeviceGetGpuInstanceProfileInfoV) profile;
  decltype(&nvmlDeviceGetGpuInstancePossiblePlacements_v2) placements;
  decltype(&nvmlDeviceGetGpuInstanceRemainingCapacity) remaining;
  decltype(&nvmlDeviceCreateGpuInstance) create_instance;
  decltype(&nvmlDeviceCreateGpuInstanceWithPlacement) create_instance_at;
  decltype(&nvmlDeviceGetGpuInstanceById) instance_by_id;
  decltype(&nvmlGpuInstanceDestroy) destroy_instance;
  decltype(&nvmlGpuInstanceGetInfo) instance_info;
  decltype(&nvmlGpuInstanceGetComputeInstanceProfileInfoV) compute_profile;
  decltype(&nvmlGpuInstanceCreateComputeInstance) create_compute;
  decltype(&nvmlGpuInstanceGetComputeInstanceById) compute_by_id;
  decltype(&nvmlComputeInstanceDestroy) destroy_compute;
};

/** A loaded and initialised library. Not for two threads at once, but for waiting for events. */
class Library {
public:
  /**
   * `path` as dlopen takes it. `simulator`: for the stand-in, the socket of its daemon; empty for a real driver. Throws
   * Failure: NVML_ERROR_LIBRARY_NOT_FOUND, NVML_ERROR_FUNCTION_NOT_FOUND, or what the initialisation answers.
   */
  Library(const std::string &path, const std::string &simulator);
  ~Library();
  Library(const Library &) = delete;
  Library &operator=(const Library &) = delete;

  const Functions &calls() const { return functions_; }
  /** Throws Failure "<what>: <the library's words>" unless `result` is NVML_SUCCESS. */
  void check(nvmlReturn_t result, const char *what) const;
  [[noreturn]] void fail(nvmlReturn_t result, const char *what) const;

private:
  void *object_;
  Functions functions_{};
};

} // namespace gpuwhisk::nvml
