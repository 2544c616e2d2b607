#include "children.h"

#include "failure.h"
#include "tracee.h"

#include <cerrno>
#include <csignal>
#include <sys/ptrace.h>

namespace gpuwhisk::inject {
namespace {

bool stops_processes(int signal) {
  return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

void end(pid_t thread) {
  if (kill(thread, SIGKILL) < 0 && errno != ESRCH) throw_errno("kill a process of the function");
}

} // namespace

void Children::handle(const Stop &stop) {
  if (stop.ended()) {
    threads_.erase(stop.thread);
    return;
  }
  threads_.insert(stop.thread);
  seen_.insert(stop.thread);
  try {
    if (stop.event() == PTRACE_EVENT_SECCOMP) return decide_and_go_on(stop.thread);
    // The thread that called exec has the id of its process from now on.
    if (auto former = static_cast<pid_t>(stop.event() == PTRACE_EVENT_EXEC ? event_message(stop.thread) : 0);
        former != stop.thread)
      threads_.erase(former);
    if (stop.event() == PTRACE_EVENT_STOP && stops_processes(WSTOPSIG(stop.status))) return stay_stopped(stop.thread);
    // A pause from outside is over by now, and the signal that ends it may have come already.
    bool was_paused = stop.signal() == SIGSTOP && !sent_from_within(signal_info(stop.thread).si_pid);
    resume(stop.thread, was_paused ? 0 : stop.signal());
  } catch (const Failure &failure) {
    if (failure.code != "gone") throw; // Killed meanwhile: its end is reported next.
  }
}

bool Children::sent_from_within(pid_t sender) const { return sender == target_.pid() || seen_.contains(sender); }

void Children::decide_and_go_on(pid_t thread) const {
  user_regs_struct registers = get_registers(thread);
  if (int error = refusal_of_child(policy_, target_, registers, seen_)) {
    registers.orig_rax = ~0ULL;
    registers.rax = static_cast<uint64_t>(-static_cast<int64_t>(error));
    set_registers(thread, registers);
  }
  resume(thread);
}

void Children::kill_all() const {
  for (pid_t thread : threads_) end(thread);
}

void Children::drop(const Stop &stop) {
  if (stop.ended()) {
    threads_.erase(stop.thread);
    return;
  }
  threads_.insert(stop.thread);
  end(stop.thread);
}

} // namespace gpuwhisk::inject
