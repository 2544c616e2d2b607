#include "sharing.h"

#include <algorithm>
#include <limits>

namespace gpuwhisk::sim {
namespace {

constexpr double tiny = 1e-9; // SMs.

/** Progressive filling: all rise alike until their demand, their owner's cap or the device holds them. */
void fill_sms(std::vector<Running *> &kernels, double sms) {
  std::vector<Running *> rising = kernels;
  for (Running *kernel : kernels) kernel->sms = 0;
  double left = sms;
  auto used_by = [&](const void *owner) {
    double sum = 0;
    for (const Running *kernel : kernels)
      if (kernel->owner == owner) sum += kernel->sms;
    return sum;
  };
  while (!rising.empty() && left > tiny) {
    double step = left / static_cast<double>(rising.size());
    for (const Running *kernel : rising) {
      auto siblings = static_cast<double>(std::ranges::count(rising, kernel->owner, &Running::owner));
      step = std::min({step, kernel->demand - kernel->sms, (kernel->owner_cap - used_by(kernel->owner)) / siblings});
    }
    for (Running *kernel : rising) kernel->sms += step;
    left -= step * static_cast<double>(rising.size());
    std::vector<Running *> still;
    for (Running *kernel : rising)
      if (kernel->sms < kernel->demand - tiny && used_by(kernel->owner) < kernel->owner_cap - tiny) still.push_back(kernel);
    if (still.size() == rising.size() && step <= tiny) break;
    rising = std::move(still);
  }
}

double cache_factor(const Running &kernel, double all_l2_bytes, double cache_bytes) {
  if (kernel.l2_bytes <= 0 || cache_bytes <= 0 || all_l2_bytes <= cache_bytes) return 1;
  double others = std::min(1.0, (all_l2_bytes - kernel.l2_bytes) / cache_bytes);
  return 1 / (1 + l2_loss * others);
}

} // namespace

void share(std::vector<Running *> &kernels, const Capacity &capacity) {
  fill_sms(kernels, capacity.sms);
  double l2_bytes = 0, demanded = 0;
  for (const Running *kernel : kernels) l2_bytes += kernel->l2_bytes;
  for (Running *kernel : kernels) {
    kernel->rate = kernel->sms * capacity.speed / kernel->work * cache_factor(*kernel, l2_bytes, capacity.l2_bytes);
    demanded += kernel->rate * kernel->dram_bytes;
  }
  if (demanded <= capacity.bandwidth) return;
  for (Running *kernel : kernels)
    if (kernel->dram_bytes > 0) kernel->rate *= capacity.bandwidth / demanded;
}

} // namespace gpuwhisk::sim
