#include "prewarmer.h"

#include "failure.h"
#include "frames.h"
#include "watch.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <utility>

namespace gpuwhisk::inject {

namespace {

constexpr int64_t attach_limit_us = 1'000'000;
constexpr unsigned take_back_again_us = 200;
constexpr size_t max_result_bytes = 64 << 20; // As of a frame of the runtime protocol.
constexpr size_t max_report_bytes = 16 << 10; // Of a load, which a guest may tell of.

Resident resident_of(const Launched &launched) {
  const gw_hello &hello = launched.hello;
  return {hello.worker, hello.script, hello.script_end, hello.mailbox, 0, launched.mailbox.get()};
}

} // namespace

Prewarmer::Prewarmer(const LaunchOptions &options)
    : launched_(launch(options, stops_)), target_(launched_.pid, start_ticks(launched_.pid)), resident_(resident_of(launched_)),
      remote_(stops_, resident_) {
  try {
    save_device(options);
    take_snapshot();
  } catch (...) {
    end();
    throw;
  }
}

Prewarmer::~Prewarmer() { end(); }

void Prewarmer::end() {
  std::set<pid_t> children = run_ ? run_->children() : std::set<pid_t>{};
  payload_.reset();
  run_.reset();
  device_.reset();
  if (!std::exchange(ended_, true)) end_process(launched_.pid, children);
}

void Prewarmer::take_snapshot() {
  // A driver's own threads go on.
  bool by_owner = launched_.hello.cuda == GW_CUDA_OWNER && !device_;
  bool kept = ((launched_.hello.cuda == GW_CUDA_KEPT || by_owner) && !device_) || launched_.loaded;
  threads_ = kept ? std::set<int>{launched_.pid, resident_.worker} : target_.threads();
  attach();
  save_context(resident_.worker, parked_);
  resident_.stack = (parked_.general.rsp - 1024) & ~uint64_t{15};
  remote_.call("give up the state page", SYS_munmap, {launched_.hello.writable_state, sizeof(gw_state)});
  if (!kept) {
    snapshot_ =
        std::make_unique<Snapshot>(target_, remote_, std::move(launched_.userfault), std::move(launched_.snapshot),
                                           launched_.from.get());
    state_ = std::make_unique<ProcessState>(target_, remote_);
  }
  if (by_owner) state_ = std::make_unique<ProcessState>(target_, remote_);
  if (launched_.loaded && launched_.from) {
    std::vector<Mapping> mappings = parse_maps(target_.read_maps());
    for (const Pages &pages : launched_.from->reveal(mappings, launched_.from->image().layout.brk))
      from_template_.push_back(pages);
  }
  std::set<int> others = threads_;
  others.erase(launched_.pid);
  others.erase(resident_.worker);
  if (!device_) held_ = std::move(others);
  else
    for (int thread : others) save_context(thread, drivers_[thread]);
  release();
  if (!device_) return;
  threads_ = {launched_.pid, resident_.worker};
  device_->begin_restore();
  settle_device();
}

// Every thread is stopped, and the worker is at the safe point, or nothing is attached and this throws.
void Prewarmer::attach() {
  target_.check_identity();
  if (__atomic_load_n(&launched_.state->ready, __ATOMIC_ACQUIRE) != GW_READY)
    throw Failure("not-ready", "The pre-warmer is not Ready.");
  for (int attempt = 0;; attempt++) {
    for (int thread : threads_)
      if (!held_.contains(thread)) seize(thread);
    for (int thread : threads_)
      if (!held_.contains(thread)) interrupt(thread);
    for (int thread : threads_)
      if (!held_.contains(thread)) await_stop(thread);
    if (at_safe_point()) break;
    let_go();
    if (attempt == 20) throw Failure("not-ready", "The pre-warmer is not at its safe point.");
    usleep(500); // It is about to be.
  }
  __atomic_store_n(&launched_.state->ready, GW_BUSY, __ATOMIC_RELEASE);
}

void Prewarmer::await_stop(pid_t thread) {
  std::optional<Stop> stop = stops_.next(now_us() + attach_limit_us, thread);
  if (!stop) throw Failure("unrestorable", "A thread of the pre-warmer does not stop.");
  if (stop->ended()) throw Failure("gone", "The pre-warmer has ended.");
}

bool Prewarmer::at_safe_point() {
  for (int thread : threads_) {
    user_regs_struct registers = get_registers(thread);
    if (static_cast<int64_t>(registers.orig_rax) < 0) return false; // Not waiting in a system call.
    bool parked = registers.rip == launched_.hello.park_return && registers.orig_rax == SYS_futex;
    if (thread == resident_.worker && !parked) return false;
  }
  return true;
}

void Prewarmer::release() {
  restore_context(resident_.worker, parked_);
  let_go();
  stops_.rest();
  __atomic_store_n(&launched_.state->ready, GW_READY, __ATOMIC_RELEASE);
}

void Prewarmer::let_go() {
  for (int thread : threads_)
    if (!held_.contains(thread)) detach(thread);
}

Outcome Prewarmer::inject(Bytes code, const InjectOptions &options, const CallOptions *first) {
  if (payload_) throw Failure("not-ready", "A function is loaded.");
  if (options.entry.size() >= GW_ENTRY_BYTES) throw Failure("payload", "The name of the entry is too long.");
  OneProcessor one;
  std::vector<Stage> stages;
  Watch watch(stages);
  if (device_) {
    settle_device();
    watch.stage("restore device");
  }
  address(&options.environment, first);
  if (code.empty()) throw Failure("payload", "The function has no code.");
  if (options.check) options.check(code);
  watch.stage("integrity");
  attach();
  watch.stage("attach");
  save_context(resident_.worker, parked_);
  try {
    payload_ = std::make_unique<Payload>(code, target_, remote_);
  } catch (...) {
    end(); // It stands still, away from its safe point.
    throw;
  }
  std::set<int> kept = threads_;
  for (const auto &[thread, context] : drivers_) kept.insert(thread);
  Policy policy = options.policy;
  policy.from_template = snapshot_ ? snapshot_->from_template() : from_template_;
  run_ = std::make_unique<Run>(stops_, target_, resident_, *payload_, policy, kept);
  std::memcpy(resident_.shared->entry, options.entry.c_str(), options.entry.size() + 1);
  resident_.shared->result_length = 0;
  limit_memory(options.memory_bytes);
  watch.stage("checkpoint");
  int64_t timeout_us = options.load_timeout_us + (first ? first->timeout_us : 0);
  return execute(GW_LOAD | (first ? GW_CALL : 0), timeout_us, std::move(stages));
}

Outcome Prewarmer::call(const CallOptions &options) {
  if (!payload_) throw Failure("not-ready", "No function is loaded.");
  OneProcessor one;
  address(nullptr, &options);
  return execute(GW_CALL, options.timeout_us, {});
}

// Puts the environment and the argument into the mailbox. Throws "payload", with nothing changed, if they are too long.
void Prewarmer::address(const std::vector<std::string> *loading, const CallOptions *call) {
  std::vector<const std::string *> texts;
  if (loading)
    for (const std::string &pair : *loading) texts.push_back(&pair);
  if (call)
    for (const std::string &pair : call->environment) texts.push_back(&pair);
  size_t length = call ? call->argument.size() + 1 : 0;
  for (const std::string *text : texts) length += text->size() + 1;
  gw_mailbox &mailbox = *resident_.shared;
  if (length > sizeof mailbox.arguments) throw Failure("payload", "The argument is larger than 8 MiB.");
  char *next = mailbox.arguments;
  for (const std::string *text : texts) next = std::copy_n(text->c_str(), text->size() + 1, next);
  mailbox.environment_length = static_cast<uint64_t>(next - mailbox.arguments);
  if (call) std::copy_n(call->argument.c_str(), call->argument.size() + 1, next);
}

Outcome Prewarmer::execute(uint32_t request, int64_t timeout_us, std::vector<Stage> stages) {
  Watch watch(stages);
  resident_.shared->request = requested_ = request;
  Ending ending = run_->go(launched_.hello.enter, launched_.hello.enter_end, launched_.hello.guest, now_us() + timeout_us);
  stops_.rest();
  watch.stage(request & GW_LOAD ? "execute" : "call");
  return conclude(ending, std::move(stages));
}

void Prewarmer::serve() {
  OneProcessor one;
  gw_mailbox &mailbox = *resident_.shared;
  mailbox.running = mailbox.yields = 0;
  mailbox.result_length = 0;
  mailbox.request = GW_SERVE;
  requested_ = GW_CALL; // What it returns with is the result of a run.
  run_->start(launched_.hello.enter, launched_.hello.guest);
}

Ending Prewarmer::watch(const Vigil &vigil) {
  Ending ending = run_->wait(launched_.hello.enter_end, vigil);
  stops_.rest();
  return ending;
}

void Prewarmer::serve_on() { run_->go_on(); }

uint32_t Prewarmer::running() const { return __atomic_load_n(&resident_.shared->running, __ATOMIC_ACQUIRE); }

Ending Prewarmer::take_back(const Ending &asked, int64_t deadline_us) {
  constexpr int64_t restarts = -514; // ERESTARTNOHAND: the wait would begin again.
  OneProcessor one;
  __atomic_store_n(&resident_.shared->yields, 1, __ATOMIC_RELEASE);
  for (Ending ending = asked;;) {
    user_regs_struct &registers = ending.registers;
    auto result = static_cast<int64_t>(registers.rax);
    if (registers.rip == launched_.hello.read_return && registers.orig_rax == SYS_ppoll &&
        (result == restarts || result == -EINTR)) {
      registers.rax = static_cast<uint64_t>(-EINTR);
      registers.orig_rax = ~0ULL;
      set_registers(resident_.worker, registers);
      run_->go_on();
      return watch({.deadline_us = now_us() + attach_limit_us});
    }
    run_->go_on(); // It runs, or is on its way to the next read.
    usleep(take_back_again_us);
    if (now_us() < deadline_us && syscall(SYS_tgkill, pid(), resident_.worker, SIGSTOP) < 0 && errno != ESRCH)
      throw_errno("tgkill");
    ending = watch({.deadline_us = deadline_us, .asked = [] { return true; }});
    if (ending.kind != Ending::asked) return ending;
  }
}

Outcome Prewarmer::conclude(const Ending &ending, std::vector<Stage> stages) {
  Outcome outcome;
  outcome.stages = std::move(stages);
  switch (ending.kind) {
  case Ending::returned:
    read_result(outcome);
    if (outcome.ok() || outcome.kind == "refused" || outcome.kind == "no-batch") return outcome;
    break;
  case Ending::fault:
    outcome.kind = "signal";
    outcome.message = describe_signal(ending.signal, ending.address);
    break;
  case Ending::exited:
    outcome.kind = "exit";
    outcome.message = "The function called exit with status " + std::to_string(ending.status) + ".";
    break;
  case Ending::late:
    outcome.kind = "timeout";
    outcome.message = "The function exceeded its time limit.";
    break;
  case Ending::asked: // Never concluded.
  case Ending::gone:
    outcome.kind = "gone";
    outcome.message = "The process ended while the function ran.";
    outcome.ready = false;
    outcome.replace = "it has ended";
    end();
    return outcome;
  }
  if (ending.kind != Ending::returned) {
    outcome.trace = walk_frames(target_, *payload_, ending.registers);
    if (!run_->refused().empty()) outcome.message += " It had been refused: " + run_->refused() + ".";
  }
  roll_back(outcome, false, true);
  return outcome;
}

void Prewarmer::read_result(Outcome &outcome) {
  gw_mailbox &mailbox = *resident_.shared;
  // Threads of the function may write there meanwhile: each field is read once, and no text beyond its field.
  uint32_t status = __atomic_load_n(&mailbox.status, __ATOMIC_RELAXED);
  uint64_t length = __atomic_load_n(&mailbox.result_length, __ATOMIC_RELAXED);
  uint64_t result = __atomic_load_n(&mailbox.result, __ATOMIC_RELAXED);
  outcome.kind = "load";
  outcome.message.assign(mailbox.message, sizeof mailbox.message);
  outcome.message.resize(std::min(outcome.message.find('\0'), sizeof mailbox.message));
  if (status == GW_REFUSED) outcome.kind = "refused";
  if (status == GW_NO_BATCH) outcome.kind = "no-batch";
  if (status == GW_NO_RESULT) outcome.message = "The function returned no text.";
  if (status != GW_DONE) return;
  outcome.kind = "result";
  outcome.called = requested_ & GW_CALL;
  if (!outcome.called && length > max_report_bytes) return;
  if (length > max_result_bytes) {
    outcome.kind = "load";
    outcome.message = "The result is larger than 64 MiB.";
    return;
  }
  outcome.result.resize(length);
  if (target_.try_read(result, outcome.result.data(), length)) return;
  outcome.kind = "load";
  outcome.message = "The result cannot be read.";
}

bool Prewarmer::alive() const {
  try {
    target_.check_identity();
    return true;
  } catch (const Failure &failure) {
    if (failure.code != "gone") throw;
    return false;
  }
}

void Prewarmer::check() {
  target_.check_identity();
  if (payload_) return;
  OneProcessor one;
  settle_device();
  attach();
  save_context(resident_.worker, parked_);
  release();
}

void Prewarmer::limit_memory(int64_t bytes) {
  if (bytes == 0 && !limited_) return;
  rlimit limit{RLIM_INFINITY, RLIM_INFINITY};
  if (bytes > 0) {
    std::string status = target_.read_status();
    size_t at = status.find("VmData:");
    uint64_t now = at == std::string::npos ? 0 : std::stoull(status.substr(at + 7)) * 1024;
    limit.rlim_cur = now + static_cast<uint64_t>(bytes);
  }
  if (prlimit(pid(), RLIMIT_DATA, &limit, nullptr) < 0) throw_errno("prlimit");
  limited_ = bytes > 0;
}

} // namespace gpuwhisk::inject
