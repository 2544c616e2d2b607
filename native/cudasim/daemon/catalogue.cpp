#include "catalogue.h"

#include "devices.h"

#include <algorithm>

namespace gpuwhisk::sim {
namespace {

// Sizes, clocks and rates: NVIDIA's data sheets. Profiles: NVIDIA's MIG user guide. What a context takes was not measured.
const std::vector<Model> models{GPUWHISK_DEVICES};

} // namespace

const Model *find_model(std::string_view type) {
  auto found = std::ranges::find(models, type, &Model::type);
  return found == models.end() ? nullptr : &*found;
}

std::span<const Model> all_models() { return models; }

} // namespace gpuwhisk::sim
