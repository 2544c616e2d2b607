#include "library.h"

#include <dlfcn.h>
#include <initializer_list>

namespace gpuwhisk::nvml {
namespace {

/** The first of `names` that the library has. */
template <typename Function> void find(void *object, Function &function, std::initializer_list<const char *> names) {
  for (const char *name : names) {
    function = reinterpret_cast<Function>(dlsym(object, name));
    if (function) return;
  }
}

template <typename Function> void require(void *object, Function &function, std::initializer_list<const char *> names) {
  find(object, function, names);
  if (!function)
    throw Failure(NVML_ERROR_FUNCTION_NOT_FOUND, std::string("NVML lacks ") + *names.begin() + ": the driver is too old");
}

/** Names without a version are used only where they behave the same. */
Functions find_all(void *object) {
  Functions f{};
  require(object, f.init, {"nvmlInit_v2"});
  require(object, f.shutdown, {"nvmlShutdown"});
  require(object, f.error_string, {"nvmlErrorString"});
  require(object, f.driver_version, {"nvmlSystemGetDriverVersion"});
  require(object, f.cuda_version, {"nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion"});
  require(object, f.count, {"nvmlDeviceGetCount_v2"});
  require(object, f.by_index, {"nvmlDeviceGetHandleByIndex_v2"});
  require(object, f.by_uuid, {"nvmlDeviceGetHandleByUUID"});
  require(object, f.uuid, {"nvmlDeviceGetUUID"});
  require(object, f.name, {"nvmlDeviceGetName"});
  require(object, f.cores, {"nvmlDeviceGetNumGpuCores"});
  require(object, f.compute_capability, {"nvmlDeviceGetCudaComputeCapability"});
  require(object, f.memory, {"nvmlDeviceGetMemoryInfo"});
  require(object, f.utilization, {"nvmlDeviceGetUtilizationRates"});
  require(object, f.temperature, {"nvmlDeviceGetTemperature"});
  require(object, f.power, {"nvmlDeviceGetPowerUsage"});
  require(object, f.clock_events,
          {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"});
  require(object, f.compute_mode, {"nvmlDeviceGetComputeMode"});
  require(object, f.set_compute_mode, {"nvmlDeviceSetComputeMode"});
  // Version 2 fills the same struct as version 3.
  require(object, f.processes, {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"});
  require(object, f.event_set_create, {"nvmlEventSetCreate"});
  require(object, f.event_set_free, {"nvmlEventSetFree"});
  require(object, f.event_set_wait, {"nvmlEventSetWait_v2"});
  require(object, f.supported_events, {"nvmlDeviceGetSupportedEventTypes"});
  require(object, f.register_events, {"nvmlDeviceRegisterEvents"});
  find(object, f.attributes, {"nvmlDeviceGetAttributes_v2"});
  find(object, f.memory_v2, {"nvmlDeviceGetMemoryInfo_v2"});
  find(object, f.mps_processes,
       {"nvmlDeviceGetMPSComputeRunningProcesses_v3", "nvmlDeviceGetMPSComputeRunningProcesses_v2"});
  find(object, f.process_rates, {"nvmlDeviceGetProcessUtilization"});
  find(object, f.gpm_support, {"nvmlGpmQueryDeviceSupport"});
  find(object, f.gpm_alloc, {"nvmlGpmSampleAlloc"});
  find(object, f.gpm_free, {"nvmlGpmSampleFree"});
  find(object, f.gpm_get, {"nvmlGpmSampleGet"});
  find(object, f.gpm_metrics, {"nvmlGpmMetricsGet"});
  find(object, f.mig_mode, {"nvmlDeviceGetMigMode"});
  find(object, f.set_mig_mode, {"nvmlDeviceSetMigMode"});
  find(object, f.max_mig_devices, {"nvmlDeviceGetMaxMigDeviceCount"});
  find(object, f.mig_device, {"nvmlDeviceGetMigDeviceHandleByIndex"});
  find(object, f.instance_id, {"nvmlDeviceGetGpuInstanceId"});
  find(object, f.compute_instance_id, {"nvmlDeviceGetComputeInstanceId"});
  find(object, f.profile, {"nvmlDeviceGetGpuInstanceProfileInfoV"});
  find(object, f.placements, {"nvmlDeviceGetGpuInstancePossiblePlacements_v2"});
  find(object, f.remaining, {"nvmlDeviceGetGpuInstanceRemainingCapacity"});
  find(object, f.create_instance, {"nvmlDeviceCreateGpuInstance"});
  find(object, f.create_instance_at, {"nvmlDeviceCreateGpuInstanceWithPlacement"});
  find(object, f.instance_by_id, {"nvmlDeviceGetGpuInstanceById"});
  find(object, f.destroy_instance, {"nvmlGpuInstanceDestroy"});
  find(object, f.instance_info, {"nvmlGpuInstanceGetInfo"});
  find(object, f.compute_profile, {"nvmlGpuInstanceGetComputeInstanceProfileInfoV"});
  find(object, f.create_compute, {"nvmlGpuInstanceCreateComputeInstance"});
  find(object, f.compute_by_id, {"nvmlGpuInstanceGetComputeInstanceById"});
  find(object, f.destroy_compute, {"nvmlComputeInstanceDestroy"});
  return f;
}

void point_at_simulator(void *object, const std::string &socket) {
  int (*use)(const char *) = nullptr;
  require(object, use, {"gpuwhisk_sim_use_socket"});
  if (use(socket.c_str()) != 0) throw Failure(NVML_ERROR_IN_USE, "This process uses the stand-in of another daemon.");
}

} // namespace

Library::Library(const std::string &path, const std::string &simulator)
    : object_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (!object_) throw Failure(NVML_ERROR_LIBRARY_NOT_FOUND, dlerror());
  try {
    functions_ = find_all(object_);
    if (!simulator.empty()) point_at_simulator(object_, simulator);
    check(functions_.init(), "nvmlInit");
  } catch (...) {
    dlclose(object_);
    throw;
  }
}

Library::~Library() {
  functions_.shutdown();
  dlclose(object_);
}

void Library::check(nvmlReturn_t result, const char *what) const {
  if (result != NVML_SUCCESS) fail(result, what);
}

void Library::fail(nvmlReturn_t result, const char *what) const {
  throw Failure(result, std::string(what) + ": " + functions_.error_string(result));
}

} // namespace gpuwhisk::nvml
