#include "process_state.h"

#include "failure.h"
#include "tracee.h"

#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/time.h>

namespace gpuwhisk::inject {
namespace {

// Structures for the calls below lie in the mailbox's argument area, which holds nothing while the worker is stopped
// for them: what a function had there is over.
constexpr uint64_t area = offsetof(gw_mailbox, arguments);
constexpr int last_signal = 64;
constexpr uint64_t timer_area = area + (last_signal + 1) * 32, stack_area = timer_area + sizeof(itimerval);

std::string field(const std::string &status, const char *name) {
  size_t at = status.find(name);
  if (at == std::string::npos) throw Failure("system", std::string("/proc/PID/status lacks ") + name);
  at += std::strlen(name);
  return status.substr(at, status.find('\n', at) - at);
}

gw_call make_call(int64_t number, uint64_t first, uint64_t second = 0, uint64_t third = 0, uint64_t fourth = 0) {
  return {number, {first, second, third, fourth, 0, 0}, 0};
}

bool can_be_handled(int signal) { return signal != SIGKILL && signal != SIGSTOP; }

} // namespace

ProcessState::ProcessState(const Target &target, Remote &remote)
    : target_(target), remote_(remote), threads_(target.threads()), registered_(registered()) {
  for (int thread : threads_) statuses_.push_back(target_.open_thread_status(thread));
  signals_ = signals();
  std::vector<gw_call> asked;
  for (int descriptor : target_.descriptors()) {
    descriptors_[descriptor] = target_.descriptor_link(descriptor);
    asked.push_back(make_call(SYS_fcntl, static_cast<uint64_t>(descriptor), F_GETFL));
    asked.push_back(make_call(SYS_fcntl, static_cast<uint64_t>(descriptor), F_GETFD));
  }
  remote_.run(asked);
  for (size_t i = 0; i < asked.size(); i += 2)
    if (asked[i].result >= 0 && asked[i + 1].result >= 0)
      flags_[static_cast<int>(asked[i].arguments[0])] = {static_cast<uint64_t>(asked[i].result),
                                                         static_cast<uint64_t>(asked[i + 1].result)};
  const Resident &resident = remote_.resident();
  auto *handlers = reinterpret_cast<Handler *>(resident.shared->arguments);
  std::vector<gw_call> calls;
  for (int signal = 1; signal <= last_signal; signal++)
    calls.push_back(make_call(SYS_rt_sigaction, static_cast<uint64_t>(signal), 0,
                              resident.mailbox + area + static_cast<uint64_t>(signal) * sizeof(Handler), 8));
  calls.push_back(make_call(SYS_sigaltstack, 0, resident.mailbox + stack_area));
  remote_.run(calls);
  std::memcpy(&signal_stack_, resident.shared->arguments + (stack_area - area), sizeof signal_stack_);
  for (int signal = 1; signal <= last_signal; signal++)
    if (handlers[signal].function != 0 && can_be_handled(signal)) handlers_[signal] = handlers[signal];
}

ProcessState::Registered ProcessState::registered() const {
  pid_t worker = remote_.resident().worker;
  return {kernel_area(worker), robust_list(worker)};
}

ProcessState::Signals ProcessState::signals() const {
  Signals now;
  // A signal that is directed at one thread is pending for that one alone.
  for (const Descriptor &thread : statuses_) {
    std::string status = Target::read_thread_status(thread);
    now.pending += field(status, "\nSigPnd:");
    if (&thread != &statuses_.front()) continue; // The rest is the same for all.
    now.shared_pending = field(status, "\nShdPnd:");
    now.ignored = field(status, "\nSigIgn:");
    now.caught = field(status, "\nSigCgt:");
  }
  return now;
}

void ProcessState::plan_handlers(std::vector<gw_call> &calls) {
  Signals now = signals();
  // A handler put in place of another leaves the masks as they are.
  changed_ = now != signals_;
  bool same = now.ignored == signals_.ignored && now.caught == signals_.caught;
  const Resident &resident = remote_.resident();
  auto *handlers = reinterpret_cast<Handler *>(resident.shared->arguments);
  for (int signal = 1; signal <= last_signal; signal++) {
    if (!can_be_handled(signal)) continue;
    auto was = handlers_.find(signal);
    if (same && was == handlers_.end()) continue;
    handlers[signal] = was == handlers_.end() ? Handler{} : was->second;
    calls.push_back(make_call(SYS_rt_sigaction, static_cast<uint64_t>(signal),
                              resident.mailbox + area + static_cast<uint64_t>(signal) * sizeof(Handler), 0, 8));
  }
}

void ProcessState::plan(std::vector<gw_call> &calls) {
  changed_ = false;
  plan_handlers(calls);
  std::set<int> open = target_.descriptors();
  for (const auto &[descriptor, link] : descriptors_)
    if (open.erase(descriptor) == 0 || target_.descriptor_link(descriptor) != link)
      throw Failure("unrestorable", "The function closed or replaced descriptor " + std::to_string(descriptor) + ".");
  for (const auto &[descriptor, flags] : flags_) {
    calls.push_back(make_call(SYS_fcntl, static_cast<uint64_t>(descriptor), F_SETFL, flags.status));
    calls.push_back(make_call(SYS_fcntl, static_cast<uint64_t>(descriptor), F_SETFD, flags.own));
  }
  for (int descriptor : open) calls.push_back(make_call(SYS_close, static_cast<uint64_t>(descriptor)));
  changed_ = changed_ || !open.empty();

  const Resident &resident = remote_.resident();
  std::memset(resident.shared->arguments + (timer_area - area), 0, sizeof(itimerval));
  std::memcpy(resident.shared->arguments + (stack_area - area), &signal_stack_, sizeof signal_stack_);
  for (int timer : {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF})
    calls.push_back(make_call(SYS_setitimer, static_cast<uint64_t>(timer), resident.mailbox + timer_area));
  calls.push_back(make_call(SYS_sigaltstack, resident.mailbox + stack_area));
}

void ProcessState::verify() const {
  if (target_.threads() != threads_) throw Failure("unrestorable", "The function left a thread behind.");
  if (registered() != registered_)
    throw Failure("unrestorable", "The function told the kernel of memory of its own (rseq, robust locks).");
  if (!changed_) return; // plan() found the rest as it was, and nothing of the function ran since.
  if (signals() != signals_) throw Failure("unrestorable", "Signal handlers or pending signals differ from those before.");
  std::set<int> open = target_.descriptors();
  if (open.size() != descriptors_.size())
    throw Failure("unrestorable", "The descriptors of the pre-warmer differ from those before.");
  for (const auto &[descriptor, link] : descriptors_)
    if (target_.descriptor_link(descriptor) != link)
      throw Failure("unrestorable", "The descriptors of the pre-warmer differ from those before.");
}

} // namespace gpuwhisk::inject
