#include "run.h"

#include "failure.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <sys/ptrace.h>
#include <sys/syscall.h>

namespace gpuwhisk::inject {
namespace {

constexpr int64_t halt_limit_us = 2'000'000; // For a thread to stop, or to end, once it is told to.
constexpr uint64_t no_call = ~0ULL;

bool ignored_by_default(int signal) {
  return signal == SIGCHLD || signal == SIGURG || signal == SIGWINCH || signal == SIGCONT;
}

} // namespace

Run::Run(Stops &stops, const Target &target, Resident resident, const Payload &payload, const Policy &policy,
         std::set<int> kept)
    : stops_(stops), target_(target), resident_(resident), payload_(payload), policy_(policy), children_(target, policy_),
      kept_(std::move(kept)) {
  kept_.erase(resident_.worker);
  stopped_[resident_.worker] = true;
}

Ending Run::go(uint64_t enter, uint64_t end, uint64_t function, int64_t deadline_us) {
  start(enter, function);
  return wait(end, {.deadline_us = deadline_us});
}

void Run::start(uint64_t enter, uint64_t function) {
  user_regs_struct registers = get_registers(resident_.worker);
  registers.rip = enter;
  registers.rbx = function;
  registers.rbp = 0; // The walk over frames ends here.
  registers.rsp = resident_.stack;
  registers.orig_rax = no_call;
  registers.eflags &= ~0x500ULL;
  set_registers(resident_.worker, registers);
  go_on();
}

void Run::go_on() {
  stopped_[resident_.worker] = false;
  resume(resident_.worker);
}

Ending Run::wait(uint64_t end, const Vigil &vigil) {
  Ending ending{};
  for (int64_t deadline_us = vigil.deadline_us;;) {
    std::optional<Stop> stop = stops_.next(deadline_us);
    if (!stop && vigil.is_late && !vigil.is_late()) {
      deadline_us = no_deadline_us;
      continue;
    }
    if (!stop) {
      end_children();
      halt(resident_.worker);
      ending.kind = stopped_.contains(resident_.worker) ? Ending::late : Ending::gone;
      if (ending.kind == Ending::late) ending.registers = get_registers(resident_.worker);
      return ending;
    }
    if (!handle(*stop, end, vigil, ending)) continue;
    if (ending.kind == Ending::fault || ending.kind == Ending::exited) {
      end_children(); // A worker in vfork does not stop before.
      halt(resident_.worker);
    }
    return ending;
  }
}

// Whether the run is over; otherwise the thread goes on.
bool Run::handle(const Stop &stop, uint64_t end, const Vigil &vigil, Ending &ending) {
  bool known = stopped_.contains(stop.thread);
  if (!known && !kept_.contains(stop.thread) && children_.own(stop.thread)) {
    children_.handle(stop);
    return false;
  }
  if (stop.ended()) {
    stopped_.erase(stop.thread);
    if (stop.thread != resident_.worker && stop.thread != target_.pid() && known) return false;
    ending.kind = Ending::gone;
    ending.signal = WIFSIGNALED(stop.status) ? WTERMSIG(stop.status) : 0;
    return true;
  }
  if (kept_.contains(stop.thread)) { // Held: nothing of it changes.
    return false;
  }
  stopped_[stop.thread] = true;
  if (stop.event() == PTRACE_EVENT_SECCOMP) return handle_call(stop.thread, ending);
  if (stop.signal() != 0) return handle_signal(stop, end, vigil, ending);
  stopped_[stop.thread] = false; // A new thread's first stop, the report of one, or a stop that came to nothing.
  resume(stop.thread);
  return false;
}

bool Run::handle_call(pid_t thread, Ending &ending) {
  user_regs_struct registers = get_registers(thread);
  CallSite site{thread, resident_.worker, stopped_.size() == 1, payload_.identity(), children_.seen()};
  Verdict verdict = decide(policy_, target_, registers, site);
  if (verdict.kind == Verdict::end) {
    ending.kind = Ending::exited;
    ending.status = static_cast<int>(registers.rdi) & 0xff;
    ending.registers = registers;
  }
  if (verdict.kind == Verdict::allow_and_replace) replace_ = std::string("The function ") + verdict.what + ".";
  if (verdict.kind == Verdict::refuse) refused_ = verdict.what;
  mapped_ = mapped_ || verdict.maps;
  if (verdict.kind == Verdict::refuse || verdict.kind == Verdict::end) {
    registers.orig_rax = no_call; // Otherwise the call is made when the thread goes on.
    registers.rax = static_cast<uint64_t>(-static_cast<int64_t>(verdict.error));
    set_registers(thread, registers);
  }
  if (verdict.kind == Verdict::end) return true;
  stopped_[thread] = false;
  resume(thread);
  return false;
}

bool Run::handle_signal(const Stop &stop, uint64_t end, const Vigil &vigil, Ending &ending) {
  int signal = stop.signal();
  user_regs_struct registers = get_registers(stop.thread);
  if (signal == SIGTRAP && stop.thread == resident_.worker && registers.rip == end) {
    ending.kind = Ending::returned;
    ending.registers = registers;
    return true;
  }
  if (signal == SIGSTOP && stop.thread == resident_.worker && vigil.asked && vigil.asked()) {
    ending.kind = Ending::asked;
    ending.registers = registers;
    return true;
  }
  if (signal == SIGSTOP) { // Of a pause, which is over by now: the function may not send it.
    stopped_[stop.thread] = false;
    resume(stop.thread);
    return false;
  }
  siginfo_t info = signal_info(stop.thread);
  uint64_t address = info.si_code > 0 ? reinterpret_cast<uint64_t>(info.si_addr) : caught_address_;
  if (ignored_by_default(signal) || catches(signal)) {
    caught_address_ = address;
    stopped_[stop.thread] = false;
    resume(stop.thread, signal);
    return false;
  }
  ending.kind = Ending::fault;
  ending.signal = signal;
  ending.registers = registers;
  ending.address = address;
  return true;
}

// Whether the function handles or ignores the signal itself.
bool Run::catches(int signal) const {
  std::string status = target_.read_status();
  for (const char *name : {"\nSigCgt:", "\nSigIgn:"}) {
    size_t at = status.find(name);
    if (at == std::string::npos) continue;
    if (std::stoull(status.substr(at + 9, 16), nullptr, 16) >> (signal - 1) & 1) return true;
  }
  return false;
}

// Stops one thread; afterwards stopped_ says so, or holds it no more. Others that stop meanwhile stay so.
void Run::halt(pid_t thread) {
  auto state = stopped_.find(thread);
  if (state == stopped_.end() || state->second) return;
  interrupt(thread);
  int64_t deadline = now_us() + halt_limit_us;
  while (stopped_.contains(thread) && !stopped_[thread]) {
    std::optional<Stop> stop = stops_.next(deadline);
    if (!stop) throw Failure("unrestorable", "A thread of the function cannot be stopped.");
    note(*stop);
  }
}

// A stop while all is being ended: threads stay stopped, processes are killed.
void Run::note(const Stop &stop) {
  bool known = stopped_.contains(stop.thread);
  if (!known && !kept_.contains(stop.thread) && children_.own(stop.thread)) children_.drop(stop);
  else if (stop.ended()) stopped_.erase(stop.thread);
  else if (!kept_.contains(stop.thread)) stopped_[stop.thread] = true;
}

void Run::end_children() {
  children_.kill_all();
  int64_t deadline = now_us() + halt_limit_us;
  while (!children_.empty()) {
    std::optional<Stop> stop = stops_.next(deadline);
    if (!stop) throw Failure("unrestorable", "A process of the function cannot be ended.");
    note(*stop);
  }
}

void Run::end_threads() {
  end_children();
  // A stopped worker starts none; threads that were just started show up here too.
  for (int thread : target_.threads())
    if (!kept_.contains(thread)) stopped_.try_emplace(thread, false);
  gw_call leave{};
  leave.number = SYS_exit;
  while (stopped_.size() > 1) {
    pid_t thread = std::ranges::find_if(stopped_, [&](auto &one) { return one.first != resident_.worker; })->first;
    halt(thread);
    if (!stopped_.contains(thread)) continue;
    resident_.shared->calls[0] = leave;
    user_regs_struct registers = get_registers(thread);
    registers.rip = resident_.script;
    registers.rbx = resident_.mailbox;
    registers.r12 = 1;
    registers.orig_rax = no_call;
    set_registers(thread, registers);
    resume(thread);
    int64_t deadline = now_us() + halt_limit_us;
    while (stopped_.contains(thread)) {
      std::optional<Stop> stop = stops_.next(deadline);
      if (!stop) throw Failure("unrestorable", "A thread of the function cannot be ended.");
      if (stop->thread != thread || stop->ended()) {
        note(*stop);
      } else {
        // The list lies in memory that the function can exchange: nothing else is approved.
        if (stop->event() == PTRACE_EVENT_SECCOMP && get_registers(thread).orig_rax != SYS_exit)
          throw Failure("unrestorable", "A thread of the function did not end as it was told to.");
        resume(thread);
      }
    }
  }
  end_children(); // Of threads that have ended only now.
}

} // namespace gpuwhisk::inject
