#include "node.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>

namespace gpuwhisk::sim {
namespace {

std::vector<Served> all_of(gwsim_connection &connection, uint32_t device_count) {
  std::vector<Served> all;
  for (uint32_t index = 0; index < device_count; index++) {
    gwsim_target target{index, 0, 0, 0, 0};
    gwsim_device device{};
    gwsim_slices slices{};
    ask(connection, GWSIM_DEVICE, &target, sizeof target, &device, sizeof device, "device");
    all.push_back({index, -1, device.uuid});
    ask(connection, GWSIM_SLICES, &target, sizeof target, &slices, sizeof slices, "slices");
    for (uint32_t i = 0; i < slices.count; i++)
      if (slices.slices[i].has_compute)
        all.push_back({index, static_cast<int32_t>(slices.slices[i].instance), slices.slices[i].uuid});
  }
  return all;
}

std::optional<Served> find(const std::vector<Served> &all, const std::string &name) {
  uint32_t number = 0;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  bool is_number = error == std::errc() && end == name.data() + name.size();
  for (const Served &one : all)
    if (is_number ? one.index == number && one.instance < 0 : !name.empty() && one.uuid.starts_with(name)) return one;
  return std::nullopt;
}

} // namespace

void ask(gwsim_connection &connection, gwsim_operation operation, const void *body, size_t length, void *answer,
         size_t size, const char *what) {
  int gone = 0;
  int status = gwsim_call(&connection, operation, body, length, answer, size, &gone);
  if (gone) throw std::runtime_error("the simulated driver is gone");
  if (status != GWSIM_OK) throw Refused(std::string(what) + ": refused (" + std::to_string(status) + ")");
}

std::vector<Served> served_devices(gwsim_connection &connection, uint32_t device_count, const char *visible) {
  std::vector<Served> all = all_of(connection, device_count), served;
  if (visible == nullptr) {
    std::ranges::copy_if(all, std::back_inserter(served), [](const Served &one) { return one.instance < 0; });
    return served;
  }
  std::istringstream names(visible);
  for (std::string name; std::getline(names, name, ',');) {
    std::optional<Served> one = find(all, name);
    if (!one) break;
    served.push_back(*one);
  }
  return served;
}

} // namespace gpuwhisk::sim
