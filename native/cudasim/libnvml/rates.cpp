// Utilisation of processes: the part of the time since the last look in which a kernel of each ran, on however few SMs.
#include "session.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

using namespace gpuwhisk::sim;

namespace {

/** What was there at a moment of the simulated device. */
struct Snapshot {
  uint64_t at_ns = 0;
  std::map<int32_t, uint64_t> busy_ns; // By pid.
  std::vector<nvmlProcessUtilizationSample_t> rates; // Since the one before.
};

std::mutex lock;
std::map<uint32_t, Snapshot> &snapshots() {
  static auto *only = new std::map<uint32_t, Snapshot>; // Never destroyed, as the rest of the library's state.
  return *only;
}

/** As the real driver samples a few times in a second. */
constexpr uint64_t period_ns = 160'000'000;

nvmlReturn_t look(nvmlDevice_t handle, Snapshot &last) {
  gwsim_device device{};
  gwsim_device_status status{};
  nvmlReturn_t result = ask(GWSIM_DEVICE, target_of(handle), &device);
  if (result == NVML_SUCCESS) result = ask(GWSIM_STATUS, target_of(handle), &status);
  if (result != NVML_SUCCESS) return result;
  if (status.lost) return NVML_ERROR_GPU_IS_LOST;
  if (device.mig_enabled) return NVML_ERROR_NOT_SUPPORTED; // As on real ones.
  if (status.now_ns >= last.at_ns && status.now_ns < last.at_ns + period_ns) return NVML_SUCCESS;
  Snapshot now;
  now.at_ns = status.now_ns;
  gwsim_target target = target_of(handle);
  gwsim_processes part{};
  do {
    result = ask(GWSIM_PROCESSES, target, &part);
    if (result != NVML_SUCCESS) return result;
    for (uint32_t i = 0; i < part.count; i++) now.busy_ns[part.processes[i].pid] += part.processes[i].busy_ns;
    target.from += part.count;
  } while (part.count > 0 && target.from < part.total);
  double elapsed_ns = static_cast<double>(now.at_ns - last.at_ns);
  for (const auto &[pid, busy_ns] : now.busy_ns) {
    auto before = last.busy_ns.find(pid);
    uint64_t busy_before = before == last.busy_ns.end() || before->second > busy_ns ? 0 : before->second;
    // Contexts of one process may run at once.
    double percent = std::min(100.0, static_cast<double>(busy_ns - busy_before) / elapsed_ns * 100);
    if (last.at_ns == 0 || percent < 0.5) continue; // Only those that were busy.
    now.rates.push_back({static_cast<unsigned>(pid), now.at_ns / 1000, static_cast<unsigned>(percent + 0.5), 0, 0, 0});
  }
  last = std::move(now);
  return NVML_SUCCESS;
}

} // namespace

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t handle, nvmlProcessUtilizationSample_t *samples,
                                             unsigned int *count, unsigned long long last_seen) {
  if (handle == nullptr || count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (handle->instance >= 0) return NVML_ERROR_NOT_SUPPORTED;
  std::lock_guard guard(lock);
  Snapshot &last = snapshots()[handle->index];
  nvmlReturn_t result = look(handle, last);
  if (result != NVML_SUCCESS) return result;
  std::vector<nvmlProcessUtilizationSample_t> found;
  std::ranges::copy_if(last.rates, std::back_inserter(found),
                       [&](const nvmlProcessUtilizationSample_t &one) { return one.timeStamp > last_seen; });
  unsigned room = *count;
  *count = found.size();
  if (found.empty()) return NVML_ERROR_NOT_FOUND;
  if (samples == nullptr || room < found.size()) return NVML_ERROR_INSUFFICIENT_SIZE;
  std::ranges::copy(found, samples);
  return NVML_SUCCESS;
}
