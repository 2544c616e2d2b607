#include "service.h"

#include "../inject/elf_object.h"
#include "../inject/failure.h"
#include "../inject/sha256.h"
#include "json.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <unistd.h>

namespace gpuwhisk::proxy {
namespace {

using inject::Failure;

// OpenWhisk's texts.
constexpr const char *no_code = "Missing main/no code to execute.";
constexpr const char *not_loaded = "Cannot start action. Check logs for details.";
constexpr const char *no_dictionary = "The action did not return a dictionary or array.";
constexpr const char *twice = "Cannot initialize the action more than once.";

using Fields = std::map<std::string, std::string_view>;

Fields fields(std::string_view payload) {
  std::optional<Fields> found = fields_of(payload);
  if (!found) throw Failure("payload", "The payload is no JSON object.");
  return *found;
}

std::string text(const Fields &fields, const char *name) {
  auto found = fields.find(name);
  return found == fields.end() ? "" : text_of(found->second).value_or("");
}

void say(const std::string &line) { dprintf(STDERR_FILENO, "%s\n", line.c_str()); }

int64_t now_epoch_ms() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * 1000LL + now.tv_nsec / 1'000'000;
}

/** Time left to the deadline (epoch milliseconds as text); without one, what CallOptions has. */
int64_t time_left_us(const std::string &deadline, int64_t fallback_us) {
  int64_t at_ms = 0;
  std::from_chars(deadline.data(), deadline.data() + deadline.size(), at_ms);
  return at_ms == 0 ? fallback_us : std::max<int64_t>(1, at_ms - now_epoch_ms()) * 1000;
}

inject::CallOptions call_of(std::string_view payload) {
  inject::CallOptions call;
  Fields given = fields(payload);
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

} // namespace

Service::Service(inject::LaunchOptions launch, bool shared_objects, std::vector<std::string> library_folders)
    : launch_(std::move(launch)), prewarmer_(std::make_unique<inject::Prewarmer>(launch_)),
      shared_objects_(shared_objects) {
  options_.policy.library_folders = std::move(library_folders);
  if (shared_objects) options_.check = inject::check_object;
}

Answer Service::init(std::string_view payload) {
  if (!code_.empty()) return {false, twice};
  Fields given = fields(payload);
  std::string code = text(given, "code");
  if (code.empty()) return {false, no_code};
  auto binary = given.find("binary");
  if (binary != given.end() && binary->second == "true") {
    std::optional<std::string> bytes = decode_base64(code);
    if (!bytes) return {false, "The code is not valid base64."};
    code = std::move(*bytes);
  }
  options_.digest = given.contains("digest") ? text(given, "digest") : inject::sha256(code.data(), code.size());
  std::string entry = text(given, "main");
  if (!shared_objects_) options_.entry = entry.empty() ? "main" : entry;
  else if (!entry.empty() && entry != "main") options_.entry = entry;
  // A function of the action's own that readies it (annotation `warm`).
  if (std::string ready = text(given, "entry"); !shared_objects_ && !ready.empty())
    options_.environment.push_back("GPUWHISK_ENTRY=" + ready);
  auto environment = given.find("env");
  if (environment != given.end() && environment->second.starts_with('{'))
    for (const auto &[name, value] : fields(environment->second))
      options_.environment.push_back(name + "=" + text_of(value).value_or(std::string(value)));
  code_ = std::move(code);
  Answer loaded = inject(nullptr);
  if (loaded.ok) return {true, "{\"ok\":true}"};
  code_.clear();
  return loaded;
}

Answer Service::run(std::string_view payload) {
  if (code_.empty()) return {false, no_code};
  inject::CallOptions call = call_of(payload);
  // After a failure the function is loaded anew, with the call.
  if (!prewarmer_ || !prewarmer_->loaded()) return inject(&call);
  return attempt([&] { return prewarmer_->call(call); });
}

Answer Service::inject(const inject::CallOptions *first) {
  return attempt([&] {
    if (!prewarmer_) prewarmer_ = std::make_unique<inject::Prewarmer>(launch_);
    inject::Bytes code(reinterpret_cast<const std::byte *>(code_.data()), code_.size());
    return prewarmer_->inject(code, options_, first);
  });
}

// A pre-warmer that is lost is replaced by the next injection.
Answer Service::attempt(const std::function<inject::Outcome()> &work) {
  try {
    inject::Outcome outcome = work();
    if (!outcome.ready) prewarmer_.reset();
    return explain(outcome);
  } catch (const Failure &failure) {
    if (failure.code == "unrestorable" || failure.code == "gone") prewarmer_.reset();
    return {false, failure.what()};
  }
}

Answer Service::explain(const inject::Outcome &outcome) const {
  if (outcome.ok()) {
    if (!outcome.called || is_object_or_array(outcome.result)) return {true, outcome.result};
    return {false, no_dictionary};
  }
  if (outcome.kind == "refused" || (outcome.kind == "load" && !shared_objects_)) return {false, outcome.message};
  say(outcome.message);
  for (const std::string &frame : outcome.trace) say("    at " + frame);
  if (!outcome.replace.empty()) say("The pre-warmer is replaced: " + outcome.replace);
  return {false, outcome.kind == "load" ? not_loaded : outcome.message};
}

} // namespace gpuwhisk::proxy
