#include "process_rates.h"

#include <algorithm>
#include <vector>

namespace gpuwhisk::nvml {

std::optional<std::map<unsigned, double>> process_rates(const Library &library, nvmlDevice_t device,
                                                        unsigned long long &last_seen) {
  const auto read = library.calls().process_rates;
  if (!read) return std::nullopt;
  unsigned count = 0;
  nvmlReturn_t result = read(device, nullptr, &count, last_seen);
  if (result == NVML_ERROR_GPU_IS_LOST) library.fail(result, "utilisation of processes");
  if (result == NVML_ERROR_NOT_FOUND || (result == NVML_SUCCESS && count == 0)) return std::map<unsigned, double>();
  if (result != NVML_ERROR_INSUFFICIENT_SIZE && result != NVML_SUCCESS) return std::nullopt;
  std::vector<nvmlProcessUtilizationSample_t> samples(count + 16); // Some may have come since.
  count = samples.size();
  result = read(device, samples.data(), &count, last_seen);
  if (result == NVML_ERROR_GPU_IS_LOST) library.fail(result, "utilisation of processes");
  if (result != NVML_SUCCESS) return std::map<unsigned, double>();
  std::map<unsigned, double> rates;
  unsigned long long newest = last_seen;
  std::map<unsigned, unsigned long long> times;
  for (unsigned i = 0; i < std::min<size_t>(count, samples.size()); i++) {
    const nvmlProcessUtilizationSample_t &one = samples[i];
    newest = std::max(newest, one.timeStamp);
    if (one.pid == 0 || one.timeStamp < times[one.pid]) continue;
    times[one.pid] = one.timeStamp;
    rates[one.pid] = std::min(one.smUtil, 100u) / 100.0;
  }
  last_seen = newest;
  return rates;
}

} // namespace gpuwhisk::nvml
