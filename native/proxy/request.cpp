#include "request.h"

#include "../inject/elf_object.h"
#include "../inject/failure.h"
#include "../inject/sha256.h"
#include "json.h"

#include <algorithm>
#include <charconv>
#include <ctime>

namespace gpuwhisk::proxy {
namespace {

using inject::Failure;

constexpr const char *no_code = "Missing main/no code to execute."; // OpenWhisk's text.
constexpr int64_t grace_us = 1'000'000; // After the deadline, which is the invoker's to keep and to tell of.
constexpr int64_t load_limit_us = 600'000'000; // Where an init has no deadline: the longest that an action may take.

int64_t now_epoch_ms() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * 1000LL + now.tv_nsec / 1'000'000;
}

/** Time left to the deadline (epoch milliseconds as text); `fallback_us` without one. */
int64_t time_left_us(const std::string &deadline, int64_t fallback_us) {
  int64_t at_ms = 0;
  std::from_chars(deadline.data(), deadline.data() + deadline.size(), at_ms);
  return at_ms == 0 ? fallback_us : std::max<int64_t>(0, at_ms - now_epoch_ms()) * 1000 + grace_us;
}

std::string decoded(const Fields &given) {
  std::string code = text(given, "code");
  if (code.empty()) throw Failure("payload", no_code);
  auto binary = given.find("binary");
  if (binary == given.end() || binary->second != "true") return code;
  std::optional<std::string> bytes = decode_base64(code);
  if (!bytes) throw Failure("payload", "The code is not valid base64.");
  return std::move(*bytes);
}

} // namespace

Fields fields(std::string_view payload) {
  std::optional<Fields> found = fields_of(payload);
  if (!found) throw Failure("violation", "The payload is no JSON object.");
  return *found;
}

std::string text(const Fields &fields, const char *name) {
  auto found = fields.find(name);
  return found == fields.end() ? "" : text_of(found->second).value_or("");
}

Init init_of(const Fields &given, bool shared_object, const inject::Policy &policy) {
  Init init{.code = decoded(given), .owner = "", .options = {}};
  inject::InjectOptions &options = init.options;
  options.policy = policy;
  options.digest = given.contains("digest") ? text(given, "digest") : inject::sha256(init.code.data(), init.code.size());
  std::string main = text(given, "main");
  if (shared_object) {
    options.check = inject::check_object;
    if (!main.empty() && main != "main") options.entry = main;
  } else {
    options.entry = main.empty() ? "main" : main;
    // A function of the action's own that readies it (annotation `warm`).
    if (std::string ready = text(given, "entry"); !ready.empty())
      options.environment.push_back("GPUWHISK_ENTRY=" + ready);
  }
  auto environment = given.find("env");
  Fields variables;
  if (environment != given.end() && environment->second.starts_with('{')) variables = fields(environment->second);
  for (const auto &[name, value] : variables)
    options.environment.push_back(name + "=" + text_of(value).value_or(std::string(value)));
  init.owner = text(variables, "__OW_NAMESPACE");
  options.load_timeout_us = time_left_us(text(variables, "__OW_DEADLINE"), load_limit_us);
  return init;
}

inject::CallOptions call_of(const Fields &given) {
  inject::CallOptions call;
  for (const auto &[name, json] : given) {
    std::optional<std::string> value = name == "value" ? std::nullopt : text_of(json);
    if (!value || value->find('\0') != std::string::npos) continue;
    std::string variable = "__OW_";
    for (char letter : name) variable += static_cast<char>(toupper(static_cast<unsigned char>(letter)));
    call.environment.push_back(variable + "=" + *value);
  }
  auto value = given.find("value");
  call.argument = value == given.end() ? "{}" : std::string(value->second);
  call.timeout_us = time_left_us(text(given, "deadline"), call.timeout_us);
  return call;
}

bool is_late(const Fields &given) { return time_left_us(text(given, "deadline"), INT64_MAX) <= grace_us; }

} // namespace gpuwhisk::proxy
