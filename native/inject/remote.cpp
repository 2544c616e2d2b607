#include "remote.h"

#include "failure.h"
#include "tracee.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <sys/ptrace.h>

namespace gpuwhisk::inject {
namespace {

// The list lies in memory that a function may have exchanged: a call is approved only if it is one of ours.
bool is_listed(const user_regs_struct &registers, std::span<const gw_call> calls) {
  const uint64_t arguments[] = {registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9};
  return std::ranges::any_of(calls, [&](const gw_call &call) {
    return static_cast<uint64_t>(call.number) == registers.orig_rax && std::ranges::equal(call.arguments, arguments);
  });
}

// By the instructions themselves: it would come again.
bool is_raised_by_code(int signal) {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE || signal == SIGTRAP ||
         signal == SIGSYS;
}

constexpr int64_t limit_us = 5'000'000; // The script makes no call that waits.

} // namespace

void Remote::run(std::span<gw_call> calls) {
  for (size_t at = 0; at < calls.size(); at += GW_MAX_CALLS)
    run_part(calls.subspan(at, std::min<size_t>(GW_MAX_CALLS, calls.size() - at)));
}

void Remote::run_part(std::span<gw_call> calls) {
  std::memcpy(resident_.shared->calls, calls.data(), calls.size_bytes());
  user_regs_struct registers = get_registers(resident_.worker);
  registers.rip = resident_.script;
  registers.rbx = resident_.mailbox + offsetof(gw_mailbox, calls);
  registers.r12 = calls.size();
  registers.rsp = resident_.stack;
  registers.orig_rax = ~0ULL; // Not in a system call: nothing is to be restarted.
  registers.eflags &= ~0x500ULL; // Neither single steps nor backward string operations.
  set_registers(resident_.worker, registers);
  resume_script(resident_.worker);
  int64_t deadline = now_us() + limit_us;
  for (;;) {
    std::optional<Stop> stop = stops_.next(deadline, resident_.worker);
    if (!stop) throw Failure("unrestorable", "The pre-warmer did not make the system calls asked for.");
    if (stop->ended()) throw Failure("gone", "The pre-warmer has ended.");
    if (stop->event() == PTRACE_EVENT_SECCOMP) {
      if (!is_listed(get_registers(resident_.worker), calls))
        throw Failure("unrestorable", "The pre-warmer made another system call than it was told to.");
      resume_script(resident_.worker);
      continue;
    }
    // A stop that was asked for earlier; what thawed the process: that has had its effect; or a signal that came while the
    // function stood still, as a timer's does: it goes with the function.
    if (stop->event() != 0 || (stop->signal() != 0 && !is_raised_by_code(stop->signal()))) {
      resume_script(resident_.worker);
      continue;
    }
    if (!stop->at_signal(SIGTRAP) || get_registers(resident_.worker).rip != resident_.script_end)
      throw Failure("unrestorable", "The pre-warmer left the list of system calls.");
    for (size_t i = 0; i < calls.size(); i++) calls[i].result = resident_.shared->calls[i].result;
    return;
  }
}

int64_t Remote::call(const char *what, int64_t number, std::initializer_list<uint64_t> arguments) {
  gw_call one{};
  one.number = number;
  std::copy(arguments.begin(), arguments.end(), one.arguments);
  run({&one, 1});
  if (one.result < 0) {
    errno = static_cast<int>(-one.result);
    throw_errno(std::string(what) + " in the pre-warmer");
  }
  return one.result;
}

} // namespace gpuwhisk::inject
