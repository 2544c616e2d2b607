// GPM: activity between two samples of a device's counters.
#include "session.h"

#include <algorithm>

using namespace gpuwhisk::sim;

struct nvmlGpmSample_st {
  gwsim_device device{};
  gwsim_device_status status{};
};

namespace {

constexpr uint64_t least_interval_ns = 100'000'000;

void fill(nvmlGpmMetric_t &metric, const nvmlGpmSample_st &before, const nvmlGpmSample_st &after) {
  double ns = static_cast<double>(after.status.now_ns - before.status.now_ns);
  metric.nvmlReturn = NVML_SUCCESS;
  double fraction = 0;
  if (metric.metricId == NVML_GPM_METRIC_SM_UTIL)
    fraction = (after.status.sm_ns - before.status.sm_ns) / (ns * after.device.sm_count);
  else if (metric.metricId == NVML_GPM_METRIC_DRAM_BW_UTIL)
    fraction = (after.status.dram_bytes - before.status.dram_bytes) / (ns / 1e9 * after.device.bandwidth);
  else metric.nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
  metric.value = std::clamp(fraction, 0.0, 1.0) * 100;
}

} // namespace

nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t handle, nvmlGpmSupport_t *support) {
  if (handle == nullptr || support == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (support->version != 1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  gwsim_device device{};
  nvmlReturn_t result = ask(GWSIM_DEVICE, target_of(handle), &device);
  support->isSupportedDevice = device.has_gpm;
  return result;
}

nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *sample) {
  *sample = new nvmlGpmSample_st;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample) {
  delete sample;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t handle, nvmlGpmSample_t sample) {
  if (handle == nullptr || sample == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  nvmlReturn_t result = ask(GWSIM_DEVICE, target_of(handle), &sample->device);
  if (result == NVML_SUCCESS) result = ask(GWSIM_STATUS, target_of(handle), &sample->status);
  // In MIG mode the counters are those of GPU instances, which only nvmlGpmMigSampleGet reads.
  bool tells = sample->device.has_gpm && !sample->device.mig_enabled;
  if (result == NVML_SUCCESS && !tells) result = NVML_ERROR_NOT_SUPPORTED;
  return result == NVML_SUCCESS && sample->status.lost ? NVML_ERROR_GPU_IS_LOST : result;
}

nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *metrics) {
  if (metrics == nullptr || metrics->sample1 == nullptr || metrics->sample2 == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (metrics->version != 1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  if (metrics->sample2->status.now_ns < metrics->sample1->status.now_ns + least_interval_ns) return NVML_ERROR_NO_DATA;
  for (unsigned i = 0; i < std::min<unsigned>(metrics->numMetrics, NVML_GPM_METRIC_MAX); i++)
    fill(metrics->metrics[i], *metrics->sample1, *metrics->sample2);
  return NVML_SUCCESS;
}
