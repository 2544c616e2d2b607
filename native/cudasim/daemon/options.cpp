#include "options.h"

#include "../wire.h"

#include <charconv>
#include <cmath>
#include <map>
#include <string_view>

namespace gpuwhisk::sim {
namespace {

[[noreturn]] void refuse(const std::string &why) { throw OptionsError(why); }

double number(std::string_view flag, std::string_view text, double least) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value) || value < least)
    refuse(std::string(flag) + ": not a number of at least " + std::to_string(least) + ": " + std::string(text));
  return value;
}

std::string known_types() {
  std::string all;
  for (const Model &model : all_models()) all += (all.empty() ? "" : ", ") + std::string(model.type);
  return all;
}

void add_gpus(std::vector<const Model *> &gpus, std::string_view item) {
  const Model *model = find_model(item);
  size_t count = 1, times = item.rfind('x');
  if (model == nullptr && times != std::string_view::npos) {
    model = find_model(item.substr(0, times));
    std::string_view digits = item.substr(times + 1);
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
    if (error != std::errc{} || end != digits.data() + digits.size()) model = nullptr;
  }
  if (model == nullptr || count == 0)
    refuse("--gpus: " + std::string(item) + " is no MODEL or MODELxCOUNT; models are " + known_types());
  if (gpus.size() + count > GWSIM_MAX_DEVICES)
    refuse("--gpus: more than " + std::to_string(GWSIM_MAX_DEVICES) + " devices");
  gpus.insert(gpus.end(), count, model);
}

std::vector<const Model *> parse_gpus(std::string_view text) {
  std::vector<const Model *> gpus;
  while (true) {
    size_t comma = text.find(',');
    add_gpus(gpus, text.substr(0, comma));
    if (comma == std::string_view::npos) return gpus;
    text.remove_prefix(comma + 1);
  }
}

} // namespace

Options parse_options(int count, char **arguments) {
  Options options;
  const std::map<std::string_view, double *> numbers{{"--time-scale", &options.time_scale},
                                                     {"--context-ms", &options.context_ms},
                                                     {"--module-ms", &options.module_ms},
                                                     {"--first-launch-ms", &options.first_launch_ms},
                                                     {"--launch-us", &options.launch_us},
                                                     {"--turn-ms", &options.turn_ms},
                                                     {"--context-mib", &options.context_mib}};
  for (int i = 1; i < count; i += 2) {
    std::string_view flag = arguments[i];
    if (i + 1 == count) refuse(std::string(flag) + ": a value is missing");
    std::string_view value = arguments[i + 1];
    if (flag == "--socket") options.socket = value;
    else if (flag == "--gpus") options.gpus = parse_gpus(value);
    else if (flag == "--seed") options.seed = static_cast<uint64_t>(number(flag, value, 0));
    else if (auto found = numbers.find(flag); found != numbers.end()) *found->second = number(flag, value, 0);
    else refuse("unknown flag " + std::string(flag));
  }
  if (options.socket.empty() || options.socket.size() >= GWSIM_PATH_LENGTH)
    refuse("--socket: a path of 1 to " + std::to_string(GWSIM_PATH_LENGTH - 1) + " bytes is needed");
  if (options.gpus.empty()) refuse("--gpus is missing");
  if (options.time_scale < 0.01 || options.time_scale > 100) refuse("--time-scale: between 0.01 and 100");
  if (options.turn_ms < 0.1) refuse("--turn-ms: at least 0.1");
  return options;
}

} // namespace gpuwhisk::sim
