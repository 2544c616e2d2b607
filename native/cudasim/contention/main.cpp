// What the stand-in's model of contention makes of workloads that run side by side for ever: reads lines such as
// `a100-40 resnet50:16:50 resnet18:8:50:train` (a device; workload, batch and percentage of the SMs of each client of its MPS
// server, and whether it trains)
// and answers each with the clients' slowdowns against running alone on the whole device, or with `unknown`.
#include "../daemon/catalogue.h"
#include "../daemon/sharing.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace gpuwhisk::sim {
namespace {

constexpr double blocks_per_sm = 8, a100_sms = 108, a100_bandwidth = 1555;

struct Workload {
  const char *name;
  double full_batch, dram, sensitivity, pressure;
};

const std::vector<Workload> workloads{
#define GPUWHISK_MODEL(name, fixed_ms, item_ms, weights_mib, item_mib, full_batch, dram, sensitivity, pressure) \
  {#name, full_batch, dram, sensitivity, pressure},
#include "../../../runtimes/cuda/gpuwhisk_models.h"
#undef GPUWHISK_MODEL
};

/** A kernel of 1 ms of a workload, as gpuwhisk_sim launches it. */
Running kernel_of(const Workload &workload, double batch, double cap, bool trains) {
  double filled = std::max(1.0, std::round(a100_sms * std::min(1.0, batch / workload.full_batch)));
  double ns_per_block = 1e6, blocks = filled * blocks_per_sm;
  Running kernel{};
  kernel.owner_cap = cap;
  kernel.filled = filled;
  kernel.demand = std::min(cap, filled);
  kernel.work = filled * ns_per_block;
  kernel.dram_bytes = blocks * ns_per_block * workload.dram * a100_bandwidth / (a100_sms * blocks_per_sm);
  if (trains) {
    kernel.sensitivity = workload.sensitivity;
    kernel.pressure = workload.pressure;
  }
  return kernel;
}

void run_together(std::vector<Running> &kernels, const Model &model) {
  std::vector<Running *> all;
  for (Running &kernel : kernels) {
    kernel.owner = &kernel;
    all.push_back(&kernel);
  }
  share(all, {static_cast<double>(model.sm_count), model.sm_speed, model.bandwidth_gb_s});
}

std::optional<std::vector<double>> slowdowns(const std::string &line) {
  std::istringstream words(line);
  std::string word;
  words >> word;
  const Model *model = find_model(word);
  if (model == nullptr) return {};
  std::vector<Running> together;
  std::vector<double> alone;
  while (words >> word) {
    std::ranges::replace(word, ':', ' ');
    std::istringstream parts(word);
    std::string name, task;
    double batch = 0, percent = 0;
    parts >> name >> batch >> percent;
    auto workload = std::ranges::find_if(workloads, [&](const Workload &one) { return name == one.name; });
    if (workload == workloads.end() || parts.fail() || batch < 1 || percent <= 0 || percent > 100) return {};
    bool trains = parts >> task && task == "train";
    std::vector<Running> solo{kernel_of(*workload, batch, model->sm_count, trains)};
    run_together(solo, *model);
    alone.push_back(solo.front().rate);
    together.push_back(kernel_of(*workload, batch, std::max(1.0, std::floor(model->sm_count * percent / 100)), trains));
  }
  run_together(together, *model);
  std::vector<double> result;
  for (size_t i = 0; i < together.size(); i++) result.push_back(alone[i] / together[i].rate);
  return result;
}

} // namespace
} // namespace gpuwhisk::sim

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    auto answer = gpuwhisk::sim::slowdowns(line);
    if (!answer) std::cout << "unknown";
    else
      for (double slowdown : *answer) std::cout << slowdown << ' ';
    std::cout << std::endl;
  }
}
