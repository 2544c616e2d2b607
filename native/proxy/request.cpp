#include "request.h"

#include "../inject/elf_object.h"

#include <algorithm>
#include <charconv>
#include <ctime>

namespace gpuwhisk::proxy {
namespace {

constexpr int64_t grace_us = 1'000'000; // After the deadline, which is the invoker's to keep and to tell of.
constexpr int64_t load_limit_us = 600'000'000; // Where an init has no deadline: the longest that an action may take.
constexpr int64_t longest_ms = int64_t{1} << 40; // Of what is no deadline of this age.

int64_t now_epoch_ms() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * 1000LL + now.tv_nsec / 1'000'000;
}

/** Time left to the deadline (epoch milliseconds as text); `fallback_us` without one. */
int64_t time_left_us(const Parts &given, int64_t fallback_us) {
  std::string_view deadline = part(given, "deadline");
  int64_t at_ms = 0;
  std::from_chars(deadline.data(), deadline.data() + deadline.size(), at_ms);
  if (at_ms <= 0) return fallback_us;
  return std::clamp<int64_t>(at_ms - now_epoch_ms(), 0, longest_ms) * 1000 + grace_us;
}

/** Adds NAME=value, unless C would read it as another one: there is a null byte in it. */
void add_variable(std::vector<std::string> &environment, std::string pair) {
  if (pair.find('\0') == std::string::npos) environment.push_back(std::move(pair));
}

std::vector<std::string> environment_of(const Parts &given) {
  std::vector<std::string> environment;
  for (std::string_view pair : all_parts(given, "env")) add_variable(environment, std::string(pair));
  return environment;
}

} // namespace

Init init_of(const Parts &given, bool shared_object, const inject::Policy &policy) {
  Init init{.code = std::string(part(given, "code")), .owner = std::string(part(given, "owner")), .options = {}};
  inject::InjectOptions &options = init.options;
  options.policy = policy;
  options.environment = environment_of(given);
  std::string main(part(given, "main"));
  if (shared_object) {
    options.check = inject::check_object;
    if (!main.empty() && main != "main") options.entry = main;
  } else {
    options.entry = main.empty() ? "main" : main;
    // A function of the action's own that readies it (annotation `warm`).
    if (std::string_view ready = part(given, "entry"); !ready.empty())
      add_variable(options.environment, "GPUWHISK_ENTRY=" + std::string(ready));
  }
  options.load_timeout_us = time_left_us(given, load_limit_us);
  return init;
}

inject::CallOptions call_of(const Parts &given) {
  inject::CallOptions call;
  call.environment = environment_of(given);
  std::string_view batch = part(given, "batch");
  if (batch.empty()) {
    call.argument = part(given, "value");
  } else {
    add_variable(call.environment, "__OW_BATCH=" + std::string(batch)); // By which the pre-warmer knows that it is one.
    call.argument = "[";
    for (std::string_view value : all_parts(given, "value")) {
      if (call.argument.size() > 1) call.argument += ',';
      call.argument += value;
    }
    call.argument += ']';
  }
  call.timeout_us = time_left_us(given, call.timeout_us);
  return call;
}

bool is_late(const Parts &given) { return time_left_us(given, INT64_MAX) <= grace_us; }

} // namespace gpuwhisk::proxy
