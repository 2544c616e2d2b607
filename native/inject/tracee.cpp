#include "tracee.h"

#include "failure.h"

#include <cerrno>
#include <elf.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utility>

namespace gpuwhisk::inject {
namespace {

constexpr long options = PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                         PTRACE_O_TRACEEXEC | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACESYSGOOD;

void request(int operation, pid_t thread, const void *address, const void *data, const char *what) {
  if (ptrace(static_cast<__ptrace_request>(operation), thread, address, data) < 0) throw_errno(what);
}

void *number(long value) { return reinterpret_cast<void *>(value); }

bool move(pid_t thread, int processor) {
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET(processor, &here);
  return sched_setaffinity(thread, sizeof here, &here) == 0;
}

bool is_there(int result) { return result == 0 || errno == ESRCH; }

/** A traced thread that is kept here, with its own affinity; no thread: 0. */
struct Kept {
  pid_t thread = 0;
  cpu_set_t own;

  /** Otherwise it is only slower. */
  void keep(pid_t other) {
    if (thread == other) return;
    release();
    int processor = sched_getcpu();
    bool moved = processor >= 0 && sched_getaffinity(other, sizeof own, &own) == 0 && CPU_ISSET(processor, &own) &&
                 move(other, processor);
    if (moved) thread = other;
  }

  bool give_back() {
    pid_t kept = std::exchange(thread, 0);
    return kept == 0 || is_there(sched_setaffinity(kept, sizeof own, &own));
  }

  void release() {
    if (!give_back()) throw_errno("sched_setaffinity");
  }
};

thread_local Kept kept;
thread_local bool keeps = false; // A OneProcessor is there.

/**
 * As request, for one that wakes a thread: it wakes here (see OneProcessor). It has its own affinity back before it runs,
 * unless it is `ours`: then it stops again before it runs anything but the proxy's code.
 */
void wake(int operation, pid_t thread, const void *data, bool ours, const char *what) {
  kept.keep(thread);
  request(operation, thread, nullptr, data, what);
  if (!ours || !keeps) kept.release();
}

} // namespace

OneProcessor::OneProcessor() {
  int processor = sched_getcpu();
  if (processor < 0 || sched_getaffinity(0, sizeof own_, &own_) < 0) return;
  moved_ = move(0, processor);
  keeps = true;
}

OneProcessor::~OneProcessor() {
  keeps = false;
  kept.give_back(); // Of a thread that was let go on it has been.
  if (moved_) sched_setaffinity(0, sizeof own_, &own_);
}

void seize(pid_t thread) { request(PTRACE_SEIZE, thread, nullptr, number(options), "ptrace SEIZE"); }
void interrupt(pid_t thread) { wake(PTRACE_INTERRUPT, thread, nullptr, true, "ptrace INTERRUPT"); }
void resume(pid_t thread, int signal) { wake(PTRACE_CONT, thread, number(signal), false, "ptrace CONT"); }
void resume_script(pid_t thread) { wake(PTRACE_CONT, thread, nullptr, true, "ptrace CONT"); }
void resume_to_call(pid_t thread) { request(PTRACE_SYSCALL, thread, nullptr, nullptr, "ptrace SYSCALL"); }
void stay_stopped(pid_t thread) { request(PTRACE_LISTEN, thread, nullptr, nullptr, "ptrace LISTEN"); }
void detach(pid_t thread) { wake(PTRACE_DETACH, thread, nullptr, false, "ptrace DETACH"); }

user_regs_struct get_registers(pid_t thread) {
  user_regs_struct registers;
  request(PTRACE_GETREGS, thread, nullptr, &registers, "ptrace GETREGS");
  return registers;
}

void set_registers(pid_t thread, const user_regs_struct &registers) {
  request(PTRACE_SETREGS, thread, nullptr, &registers, "ptrace SETREGS");
}

void save_context(pid_t thread, Context &context) {
  context.general = get_registers(thread);
  iovec area{context.extended.data(), context.extended.size()};
  request(PTRACE_GETREGSET, thread, number(NT_X86_XSTATE), &area, "ptrace GETREGSET");
  context.extended_size = area.iov_len;
  request(PTRACE_GETSIGMASK, thread, number(sizeof context.signal_mask), &context.signal_mask, "ptrace GETSIGMASK");
}

void restore_context(pid_t thread, const Context &context) {
  iovec area{const_cast<std::byte *>(context.extended.data()), context.extended_size};
  request(PTRACE_SETREGSET, thread, number(NT_X86_XSTATE), &area, "ptrace SETREGSET");
  request(PTRACE_SETSIGMASK, thread, number(sizeof context.signal_mask), &context.signal_mask, "ptrace SETSIGMASK");
  set_registers(thread, context.general);
}

siginfo_t signal_info(pid_t thread) {
  siginfo_t info;
  request(PTRACE_GETSIGINFO, thread, nullptr, &info, "ptrace GETSIGINFO");
  return info;
}

uint64_t robust_list(pid_t thread) {
  void *head = nullptr;
  size_t length = 0;
  if (syscall(SYS_get_robust_list, thread, &head, &length) < 0) return 0;
  return reinterpret_cast<uint64_t>(head);
}

std::pair<uint64_t, uint64_t> kernel_area(pid_t thread) {
  // As in linux/ptrace.h since 5.13, which older headers lack.
  struct {
    uint64_t address;
    uint32_t size, signature, flags, padding;
  } area{};
  constexpr int get_configuration = 0x420f;
  if (ptrace(static_cast<__ptrace_request>(get_configuration), thread, sizeof area, &area) < 0) return {0, 0};
  return {area.address, area.size};
}

unsigned long event_message(pid_t thread) {
  unsigned long message = 0;
  request(PTRACE_GETEVENTMSG, thread, nullptr, &message, "ptrace GETEVENTMSG");
  return message;
}

} // namespace gpuwhisk::inject
