#include "sharing.h"

#include "devices.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace gpuwhisk::sim {
namespace {

constexpr double tiny = 1e-9; // SMs.

/** A logarithm that is linear in that of the fill. */
struct Linear {
  double intercept, by_log_fill;
};

struct Form {
  double sharpness, bound;
  Linear demand, sensitivity, pressure;
};

constexpr Form form{GPUWHISK_CONTENTION};

double evaluate(const Linear &line, double fill, double factor) {
  double value = line.intercept + line.by_log_fill * std::log(fill) + std::log(factor);
  return std::exp(form.bound * std::tanh(value / form.bound));
}

/** Progressive filling: all kernels of an owner rise alike until their demand, its cap or the device holds them. */
void fill_sms(std::vector<Running *> &kernels, double sms) {
  std::vector<Running *> rising = kernels;
  std::ranges::sort(rising, {}, &Running::demand);
  double left = std::min(sms, kernels.front()->owner_cap);
  for (size_t done = 0; done < rising.size(); done++) {
    rising[done]->sms = std::min(rising[done]->demand, left / static_cast<double>(rising.size() - done));
    left -= rising[done]->sms;
  }
}

/** SMs that a kernel would fill over those that there are, in proportion to what its owner lets it have of them. */
double fill_of(const Running &kernel, double sms) {
  return std::max(tiny, kernel.filled / sms * kernel.sms / std::min(kernel.filled, sms));
}

/** Time beside other owners' kernels over the time alone: ((1 + x^p) / (1 + d^p))^(1/p) with x = d + u·Σ v. */
double contention(const Running &own, const std::vector<Running *> &kernels, double sms) {
  double fill = fill_of(own, sms), beside = 0;
  for (const Running *other : kernels)
    if (other->owner != own.owner) beside += evaluate(form.pressure, fill_of(*other, sms), other->pressure);
  double d = evaluate(form.demand, fill, 1), x = d + evaluate(form.sensitivity, fill, own.sensitivity) * beside;
  return std::pow((1 + std::pow(x, form.sharpness)) / (1 + std::pow(d, form.sharpness)), 1 / form.sharpness);
}

} // namespace

void share(std::vector<Running *> &kernels, const Capacity &capacity) {
  std::map<const void *, std::vector<Running *>> owners;
  for (Running *kernel : kernels) owners[kernel->owner].push_back(kernel);
  double limits = 0, used = 0, demanded = 0;
  for (auto &[owner, own] : owners) {
    fill_sms(own, capacity.sms);
    limits += std::min(capacity.sms, own.front()->owner_cap);
  }
  bool overlap = limits > capacity.sms + tiny;
  std::vector<double> slower(kernels.size(), 1);
  for (size_t i = 0; i < kernels.size() && overlap; i++) slower[i] = contention(*kernels[i], kernels, capacity.sms);
  for (size_t i = 0; i < kernels.size(); i++) {
    Running &kernel = *kernels[i];
    kernel.rate = kernel.sms * capacity.speed / kernel.work / slower[i];
    kernel.sms /= slower[i];
    used += kernel.sms;
    demanded += kernel.rate * kernel.dram_bytes;
  }
  // Counters of a device never tell of more than all SMs.
  for (Running *kernel : kernels) kernel->sms *= std::min(1.0, capacity.sms / std::max(used, tiny));
  if (demanded <= capacity.bandwidth) return;
  for (Running *kernel : kernels)
    if (kernel->dram_bytes > 0) kernel->rate *= capacity.bandwidth / demanded;
}

} // namespace gpuwhisk::sim
