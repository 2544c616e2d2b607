#include "sampler.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace gpuwhisk::sim {
namespace {

constexpr double window_ns = 1e9, interval_ns = 1e8;
constexpr double warming_ns = 20e9; // Time constant of the heat sink.
constexpr double idle_c = 32, full_c = 78;

/** Fraction of the power range in use: half of it comes with any kernel's SMs, the rest with memory. */
double load_of(const Usage &from, const Usage &to, double elapsed_ns, const Gpu &gpu) {
  if (elapsed_ns <= 0) return 0;
  double sms = (to.sm_ns - from.sm_ns) / elapsed_ns / gpu.model().sm_count;
  double memory = (to.dram_bytes - from.dram_bytes) / elapsed_ns / gpu.model().bandwidth_gb_s;
  return std::min(1.0, 0.7 * sms + 0.3 * memory);
}

} // namespace

void Sampler::sample(const std::vector<std::unique_ptr<Gpu>> &gpus, double now_ns) {
  now_ns_ = now_ns;
  for (const auto &gpu : gpus) {
    Sensors &sensors = sensors_[gpu.get()];
    auto &readings = sensors.readings;
    if (!readings.empty() && now_ns - readings.back().at_ns < interval_ns) continue;
    Usage usage = gpu->usage();
    if (!readings.empty()) {
      double elapsed_ns = now_ns - readings.back().at_ns;
      double goal_c = idle_c + (full_c - idle_c) * load_of(readings.back().usage, usage, elapsed_ns, *gpu);
      sensors.temperature_c = goal_c + (sensors.temperature_c - goal_c) * std::exp(-elapsed_ns / warming_ns);
    }
    readings.push_back({now_ns, usage});
    while (readings.size() > 2 && readings[1].at_ns <= now_ns - window_ns) readings.pop_front();
  }
}

void Sampler::fill(const Gpu &gpu, gwsim_device_status &status) const {
  const Model &model = gpu.model();
  double load = 0, busy = 0, memory = 0;
  auto found = sensors_.find(&gpu);
  if (found != sensors_.end() && !found->second.readings.empty()) {
    const Reading &first = found->second.readings.front();
    double elapsed_ns = now_ns_ - first.at_ns;
    Usage usage = gpu.usage();
    if (elapsed_ns > 0) {
      busy = std::min(1.0, (usage.busy_ns - first.usage.busy_ns) / elapsed_ns);
      memory = std::min(1.0, (usage.dram_bytes - first.usage.dram_bytes) / elapsed_ns / model.bandwidth_gb_s);
      load = load_of(first.usage, usage, elapsed_ns, gpu);
    }
    status.temperature_c = static_cast<uint32_t>(found->second.temperature_c);
  }
  status.utilisation_percent = static_cast<uint32_t>(std::lround(busy * 100));
  status.memory_utilisation_percent = static_cast<uint32_t>(std::lround(memory * 100));
  status.power_mw = static_cast<uint32_t>(1000 * (model.idle_w + (model.power_limit_w - model.idle_w) * load));
  status.sm_clock_mhz = gpu.clock_event_reasons == 0 ? model.sm_clock_mhz : model.sm_clock_mhz / 2;
  status.memory_clock_mhz = model.memory_clock_mhz;
}

} // namespace gpuwhisk::sim
