#include "catalogue.h"

#include <algorithm>

namespace gpuwhisk::sim {
namespace {

// Sizes, clocks and rates: NVIDIA's data sheets. Profiles: NVIDIA's MIG user guide. What a context takes was not measured.
const std::vector<Model> models{
    {"rtx3090", "NVIDIA GeForce RTX 3090 (simulated)", 82, 24, 936, 25, 6, 0.30, 8, 6, 1695, 9751, 25, 350, 320, 210, false,
     false, {}},
    {"a100-40", "NVIDIA A100-SXM4-40GB (simulated)", 108, 40, 1555, 25, 40, 1, 8, 0, 1410, 1215, 52, 400, 420, 280, true,
     false,
     {{"1g.5gb", 19, 1, 1, 14, 4.75, {0, 1, 2, 3, 4, 5, 6}, 7},
      {"1g.5gb+me", 20, 1, 1, 14, 4.75, {0, 1, 2, 3, 4, 5, 6}, 1, true},
      {"1g.10gb", 15, 2, 1, 14, 9.6, {0, 2, 4, 6}, 4},
      {"2g.10gb", 14, 2, 2, 28, 9.6, {0, 2, 4}, 3},
      {"3g.20gb", 9, 4, 3, 42, 19.5, {0, 4}, 2},
      {"4g.20gb", 5, 4, 4, 56, 19.5, {0}, 1},
      {"7g.40gb", 0, 8, 7, 98, 39.25, {0}, 1}}},
    {"a100-80", "NVIDIA A100-SXM4-80GB (simulated)", 108, 80, 2039, 25, 40, 1, 8, 0, 1410, 1593, 60, 400, 420, 280, true,
     false,
     {{"1g.10gb", 19, 1, 1, 14, 9.5, {0, 1, 2, 3, 4, 5, 6}, 7},
      {"1g.10gb+me", 20, 1, 1, 14, 9.5, {0, 1, 2, 3, 4, 5, 6}, 1, true},
      {"1g.20gb", 15, 2, 1, 14, 19.5, {0, 2, 4, 6}, 4},
      {"2g.20gb", 14, 2, 2, 28, 19.5, {0, 2, 4}, 3},
      {"3g.40gb", 9, 4, 3, 42, 39.25, {0, 4}, 2},
      {"4g.40gb", 5, 4, 4, 56, 39.25, {0}, 1},
      {"7g.80gb", 0, 8, 7, 98, 79, {0}, 1}}},
    {"h100", "NVIDIA H100 80GB HBM3 (simulated)", 132, 80, 3352, 50, 50, 2.6, 9, 0, 1980, 2619, 70, 700, 520, 330, false,
     true,
     {{"1g.10gb", 19, 1, 1, 16, 9.75, {0, 1, 2, 3, 4, 5, 6}, 7},
      {"1g.10gb+me", 20, 1, 1, 16, 9.75, {0, 1, 2, 3, 4, 5, 6}, 1, true},
      {"1g.20gb", 15, 2, 1, 26, 19.5, {0, 2, 4, 6}, 4},
      {"2g.20gb", 14, 2, 2, 32, 19.5, {0, 2, 4}, 3},
      {"3g.40gb", 9, 4, 3, 60, 39.5, {0, 4}, 2},
      {"4g.40gb", 5, 4, 4, 64, 39.5, {0}, 1},
      {"7g.80gb", 0, 8, 7, 132, 79, {0}, 1}}},
    {"h200", "NVIDIA H200 (simulated)", 132, 140.4, 4800, 50, 50, 2.6, 9, 0, 1980, 3201, 75, 700, 520, 330, false, true,
     {{"1g.18gb", 19, 1, 1, 16, 16, {0, 1, 2, 3, 4, 5, 6}, 7},
      {"1g.18gb+me", 20, 1, 1, 16, 16, {0, 1, 2, 3, 4, 5, 6}, 1, true},
      {"1g.35gb", 15, 2, 1, 26, 32.25, {0, 2, 4, 6}, 4},
      {"2g.35gb", 14, 2, 2, 32, 32.25, {0, 2, 4}, 3},
      {"3g.71gb", 9, 4, 3, 60, 69.5, {0, 4}, 2},
      {"4g.71gb", 5, 4, 4, 64, 69.5, {0}, 1},
      {"7g.141gb", 0, 8, 7, 132, 139, {0}, 1}}},
};

} // namespace

const Model *find_model(std::string_view type) {
  auto found = std::ranges::find(models, type, &Model::type);
  return found == models.end() ? nullptr : &*found;
}

std::span<const Model> all_models() { return models; }

} // namespace gpuwhisk::sim
