#include "sampler.h"

#include "process_rates.h"

#include <algorithm>

namespace gpuwhisk::nvml {
namespace {

using List = decltype(&nvmlDeviceGetComputeRunningProcesses_v3);

/** More arrive between two calls: room for some is added, and it is tried a few times. */
std::vector<nvmlProcessInfo_t> processes_by(const Library &library, nvmlDevice_t device, List list) {
  std::vector<nvmlProcessInfo_t> processes(64);
  for (int attempt = 0; attempt < 4; attempt++) {
    unsigned count = processes.size();
    nvmlReturn_t result = list(device, &count, processes.data());
    if (result == NVML_ERROR_NOT_SUPPORTED || result == NVML_ERROR_NO_PERMISSION) return {};
    if (result == NVML_SUCCESS) {
      processes.resize(count);
      return processes;
    }
    if (result != NVML_ERROR_INSUFFICIENT_SIZE) library.fail(result, "processes");
    processes.resize(count + 32);
  }
  return {};
}

std::string slice_of(const Device &device, unsigned instance) {
  for (const Slice &slice : device.slices)
    if (slice.instance == instance) return slice.uuid;
  return "";
}

/** Clients of MPS are in a list of their own; some drivers name them in both. */
std::vector<Process> processes_of(const Library &library, const Device &device) {
  std::vector<Process> processes;
  for (List list : {library.calls().processes, library.calls().mps_processes}) {
    if (!list) continue;
    for (const nvmlProcessInfo_t &info : processes_by(library, device.handle, list)) {
      uint64_t memory_mib = info.usedGpuMemory == ~0ull ? 0 : info.usedGpuMemory >> 20;
      std::string slice = slice_of(device, info.gpuInstanceId);
      auto known = std::find_if(processes.begin(), processes.end(),
                                [&](const Process &one) { return one.pid == info.pid && one.slice == slice; });
      if (known == processes.end()) processes.push_back({info.pid, memory_mib, slice, std::nullopt});
      else known->memory_mib = std::max(known->memory_mib, memory_mib);
    }
  }
  return processes;
}

struct Reason {
  unsigned long long bit;
  const char *words;
};
/** Idle clocks are nothing to report. */
constexpr Reason reasons[] = {
    {nvmlClocksEventReasonApplicationsClocksSetting, "clocks set by an operator"},
    {nvmlClocksEventReasonSwPowerCap, "power cap"},
    {nvmlClocksEventReasonHwSlowdown, "hardware slowdown"},
    {nvmlClocksEventReasonSyncBoost, "sync boost"},
    {nvmlClocksEventReasonSwThermalSlowdown, "thermal slowdown"},
    {nvmlClocksEventReasonHwThermalSlowdown, "hardware thermal slowdown"},
    {nvmlClocksEventReasonHwPowerBrakeSlowdown, "power brake"},
    {nvmlClocksEventReasonDisplayClockSetting, "display clocks"},
};

/** Whether a figure is there: what a chip does not tell is no error, a lost device is. */
bool told(const Library &library, nvmlReturn_t result, const char *what) {
  if (result == NVML_ERROR_GPU_IS_LOST) library.fail(result, what);
  return result == NVML_SUCCESS;
}

} // namespace

Sampler::~Sampler() {
  while (!counters_.empty()) close_counters(counters_.begin()->first);
}

void Sampler::close_counters(const std::string &uuid) {
  auto found = counters_.find(uuid);
  if (found == counters_.end()) return;
  if (found->second.before) library_.calls().gpm_free(found->second.before);
  if (found->second.now) library_.calls().gpm_free(found->second.now);
  counters_.erase(found);
}

std::vector<Sample> Sampler::sample() {
  unsigned count = 0;
  library_.check(library_.calls().count(&count), "number of devices");
  // A device that was lost and comes back has a new handle: the list is built again until it is whole.
  if (devices_.size() != count) devices_ = list_devices(library_);
  std::vector<Sample> samples;
  for (Device &device : devices_) {
    try {
      // Another program may cut the device at any time.
      device.mig = is_mig(library_, device.handle);
      device.slices = device.mig ? list_slices(library_, device.handle) : std::vector<Slice>{};
      samples.push_back(sample_device(device));
    } catch (const Failure &failure) {
      if (failure.code != NVML_ERROR_GPU_IS_LOST) throw;
    }
  }
  if (samples.size() < devices_.size()) devices_.clear();
  return samples;
}

Sample Sampler::sample_device(const Device &device) {
  const Functions &nvml = library_.calls();
  Sample sample{};
  sample.uuid = device.uuid;
  // Version 2 leaves out what the driver keeps for itself, as the sum of what processes hold does.
  nvmlMemory_v2_t memory{};
  memory.version = NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2);
  if (nvml.memory_v2 && nvml.memory_v2(device.handle, &memory) == NVML_SUCCESS) {
    sample.used_memory_mib = memory.used >> 20;
  } else {
    nvmlMemory_t old{};
    library_.check(nvml.memory(device.handle, &old), "memory");
    sample.used_memory_mib = old.used >> 20;
  }
  nvmlUtilization_t rates{};
  if (told(library_, nvml.utilization(device.handle, &rates), "utilisation")) sample.utilisation = rates.gpu / 100.0;
  unsigned value = 0;
  if (told(library_, nvml.temperature(device.handle, NVML_TEMPERATURE_GPU, &value), "temperature"))
    sample.temperature_c = value;
  if (told(library_, nvml.power(device.handle, &value), "power")) sample.power_w = value / 1000.0;
  unsigned long long events = 0;
  if (told(library_, nvml.clock_events(device.handle, &events), "clock events"))
    for (const Reason &reason : reasons)
      if (events & reason.bit) sample.clock_events.push_back(reason.words);
  sample.processes = processes_of(library_, device);
  add_rates(device, sample);
  add_activity(device, sample);
  return sample;
}

void Sampler::add_rates(const Device &device, Sample &sample) {
  auto rates = process_rates(library_, device.handle, last_seen_[device.uuid]);
  if (!rates) return;
  for (Process &process : sample.processes) {
    auto found = rates->find(process.pid);
    process.utilisation = found == rates->end() ? 0 : found->second;
  }
}

void Sampler::open_counters(const Device &device, Counters &counters) {
  const Functions &nvml = library_.calls();
  nvmlGpmSupport_t support{1, 0};
  if (!nvml.gpm_support || nvml.gpm_support(device.handle, &support) != NVML_SUCCESS || !support.isSupportedDevice)
    return;
  library_.check(nvml.gpm_alloc(&counters.before), "room for counters");
  library_.check(nvml.gpm_alloc(&counters.now), "room for counters");
  // What else may be forbidden shows here, and then there are no such figures.
  counters.supported = nvml.gpm_get(device.handle, counters.before) == NVML_SUCCESS;
}

void Sampler::add_activity(const Device &device, Sample &sample) {
  // Counters of a whole device do not apply to its slices. Counters from before the cut are void after it.
  if (device.mig) return close_counters(device.uuid);
  const Functions &nvml = library_.calls();
  auto [place, is_new] = counters_.try_emplace(device.uuid);
  Counters &counters = place->second;
  if (is_new) return open_counters(device, counters);
  if (!counters.supported || !told(library_, nvml.gpm_get(device.handle, counters.now), "counters")) return;
  nvmlGpmMetricsGet_t request{};
  request.version = 1;
  request.numMetrics = 2;
  request.sample1 = counters.before;
  request.sample2 = counters.now;
  request.metrics[0].metricId = NVML_GPM_METRIC_SM_UTIL;
  request.metrics[1].metricId = NVML_GPM_METRIC_DRAM_BW_UTIL;
  // Less than 100 ms after the sample before there are none: the older one is kept, for the next.
  if (!told(library_, nvml.gpm_metrics(&request), "counters")) return;
  if (request.metrics[0].nvmlReturn == NVML_SUCCESS) sample.sm_activity = request.metrics[0].value / 100;
  if (request.metrics[1].nvmlReturn == NVML_SUCCESS) sample.dram_activity = request.metrics[1].value / 100;
  std::swap(counters.before, counters.now);
}

} // namespace gpuwhisk::nvml
