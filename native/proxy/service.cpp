#include "service.h"

#include "../inject/failure.h"
#include "batch.h"

#include <cstdio>
#include <malloc.h>
#include <unistd.h>

namespace gpuwhisk::proxy {
namespace {

using inject::Failure;

// OpenWhisk's texts.
constexpr const char *no_code = "Missing main/no code to execute.";
constexpr const char *not_loaded = "Cannot start action. Check logs for details.";
constexpr const char *twice = "Cannot initialize the action more than once.";

constexpr const char *exited = "The action did not produce a valid response and exited unexpectedly.";
constexpr const char *exited_at_once = "The action did not initialize and exited unexpectedly.";
constexpr const char *late = "The function exceeded its time limit.";
constexpr const char *of_another = "This runtime has run code of another namespace.";
constexpr const char *done = "{\"ok\":true}";

constexpr size_t large_payload = 1 << 20;

void say(const std::string &line) { dprintf(STDERR_FILENO, "%s\n", line.c_str()); }

} // namespace

Service::Service(const inject::LaunchOptions &launch, bool shared_objects, inject::Policy policy,
                 const std::vector<std::string> &scratch)
    : prewarmer_(launch), scratch_(scratch), policy_(std::move(policy)), runs_(launch.runs), shared_objects_(shared_objects) {}

Answer Service::init(std::string payload) {
  if (action_) return {false, twice};
  Init init = init_of(parts_of(payload), shared_objects_, policy_);
  // Large code would be in memory once more while the function, which shares the limit, loads it.
  if (payload.size() >= large_payload) {
    std::string().swap(payload);
    malloc_trim(0); // The allocator would keep it.
  }
  if (init.code.empty()) return {false, no_code};
  if (owner_ && *owner_ != init.owner) return {false, of_another};
  owner_ = init.owner;
  action_ = std::move(init);
  Answer loaded = inject(nullptr);
  if (loaded.ok) return {true, loaded.text.empty() ? done : loaded.text};
  if (loaded.text == exited) loaded.text = exited_at_once;
  action_.reset();
  return loaded;
}

Answer Service::run(std::string_view payload) {
  if (!action_) return {false, no_code};
  Parts given = parts_of(payload);
  // An interpreter deals with a batch by itself.
  return shared_objects_ && !part(given, "batch").empty() ? run_batch(given) : run_one(given);
}

Answer Service::run_one(const Parts &given) {
  inject::CallOptions call = call_of(given);
  // After a failure the function is loaded again, with the call.
  if (!prewarmer_.loaded()) return inject(&call);
  return attempt([&] { return prewarmer_.call(call); });
}

// All at once by the function's own entry for that; else one after the other, and each request's failure is its own.
Answer Service::run_batch(const Parts &given) {
  if (action_->batches) {
    Answer together = run_one(given);
    if (action_->batches) return together;
  }
  Parts alone;
  for (const auto &one : given)
    if (one.first != "batch" && one.first != "value") alone.push_back(one);
  alone.emplace_back("value", std::string_view());
  Entries entries;
  for (std::string_view value : all_parts(given, "value")) {
    alone.back().second = value;
    if (lost_) entries.add({false, exited});
    else if (is_late(given)) entries.add({false, late});
    else entries.add(run_one(alone));
  }
  return entries.answer();
}

Answer Service::unload(std::string_view payload) {
  bool all = part(parts_of(payload), "thorough") == "true";
  int64_t verify_us = 0;
  if (prewarmer_.loaded()) {
    Answer unloaded = attempt([&] {
      inject::Outcome outcome = prewarmer_.unload(all);
      for (const inject::Stage &stage : outcome.stages)
        if (stage.name == std::string_view("verify")) verify_us = stage.us;
      return outcome;
    });
    if (!unloaded.ok) return unloaded;
  }
  action_.reset();
  serves_ = true;
  if (!runs_.is_clean()) {
    lost_ = true;
    return {false, "The action changed the socket for runs, or left something in it."};
  }
  return {true, "{\"ok\":true,\"verifyUs\":" + std::to_string(verify_us) + "}"};
}

std::optional<Failed> Service::attend(Inbox &inbox) {
  constexpr int64_t grace_us = 1'000'000, end_limit_us = 2'000'000;
  uint32_t cancelled = 0;
  inject::Vigil vigil{.deadline_us = inject::no_deadline_us, .asked = [&] { return !inbox.empty(); }};
  vigil.is_late = [&] { return cancelled != 0 && prewarmer_.running() == cancelled; };
  prewarmer_.serve();
  for (;;) {
    inject::Ending ending = prewarmer_.watch(vigil);
    if (ending.kind != inject::Ending::asked) return fail(ending);
    std::optional<uint32_t> cancel = inbox.take_cancel();
    if (cancel) {
      cancelled = *cancel;
      vigil.deadline_us = inject::now_us() + grace_us;
    }
    if (!inbox.empty()) {
      int64_t limit = vigil.is_late() ? vigil.deadline_us : inject::now_us() + end_limit_us;
      ending = prewarmer_.take_back(ending, limit);
      if (ending.kind == inject::Ending::returned && prewarmer_.running() == 0) return std::nullopt;
      return fail(ending);
    }
    prewarmer_.serve_on();
  }
}

Failed Service::fail(const inject::Ending &ending) {
  uint32_t run = prewarmer_.running(); // Before the mailbox is emptied.
  Answer answer = attempt([&] { return prewarmer_.conclude(ending); });
  // One that is loaded still could not send its answer; one that is not is loaded again with the next run.
  serves_ = ending.kind != inject::Ending::returned || !prewarmer_.loaded();
  return {run, answer};
}

Answer Service::check() {
  try {
    prewarmer_.check();
    return {true, done};
  } catch (const Failure &failure) {
    return {false, failure.what()};
  }
}

Answer Service::inject(const inject::CallOptions *first) {
  return attempt([&] {
    const std::string &code = action_->code;
    inject::Bytes bytes(reinterpret_cast<const std::byte *>(code.data()), code.size());
    return prewarmer_.inject(bytes, action_->options, first);
  });
}

Answer Service::attempt(const std::function<inject::Outcome()> &work) {
  try {
    inject::Outcome outcome = work();
    lost_ = !outcome.ready;
    killed_ = outcome.kind == "gone";
    if (outcome.kind == "no-batch") action_->batches = false;
    if (!lost_ && !prewarmer_.loaded()) scratch_.empty();
    return explain(outcome);
  } catch (const Failure &failure) {
    lost_ = failure.code == "unrestorable" || failure.code == "gone" || failure.code == "system";
    return {false, failure.what()};
  }
}

Answer Service::explain(const inject::Outcome &outcome) const {
  if (!outcome.ready) say("The process of the function is given up: " + outcome.replace);
  if (outcome.ok()) {
    if (!outcome.ready) return {false, "The process of the function cannot serve on: " + outcome.replace};
    return {true, outcome.result};
  }
  if (outcome.kind == "refused" || (outcome.kind == "load" && !shared_objects_)) return {false, outcome.message};
  say(outcome.message);
  for (const std::string &frame : outcome.trace) say("    at " + frame);
  if (outcome.kind == "exit") return {false, exited};
  return {false, outcome.kind == "load" ? not_loaded : outcome.message};
}

} // namespace gpuwhisk::proxy
