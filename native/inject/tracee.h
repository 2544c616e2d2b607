// One traced thread. Every function here must be called by the thread that seized it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <csignal>
#include <sched.h>
#include <sys/types.h>
#include <sys/user.h>
#include <utility>

namespace gpuwhisk::inject {

/** What a thread's registers and signal mask were. */
struct Context {
  user_regs_struct general;
  std::array<std::byte, 16384> extended; // XSAVE area: floating point, vectors
  size_t extended_size;
  uint64_t signal_mask;
};

/**
 * Keeps this thread on the processor that it is on, and with that the threads that it lets go on: waking another
 * processor takes longer than most of what is done between two stops, and memory that one has changed is slow on another.
 */
class OneProcessor {
public:
  OneProcessor();
  ~OneProcessor();
  OneProcessor(const OneProcessor &) = delete;
  OneProcessor &operator=(const OneProcessor &) = delete;

private:
  cpu_set_t own_;
  bool moved_ = false;
};

/** Attaches without stopping. The process dies with this thread (PTRACE_O_EXITKILL); threads that it starts are traced too. */
void seize(pid_t thread);
void interrupt(pid_t thread);
/** Lets a stopped thread go on, with `signal` delivered if it is not 0. */
void resume(pid_t thread, int signal = 0);
/** Lets it go on in the script of remote.h, which stops at its end. */
void resume_script(pid_t thread);
/** Lets it go on until its next system call begins or ends. */
void resume_to_call(pid_t thread);
void detach(pid_t thread);
/** Leaves a thread of a process that job control has stopped as it is, until it is told to go on. */
void stay_stopped(pid_t thread);

user_regs_struct get_registers(pid_t thread);
void set_registers(pid_t thread, const user_regs_struct &registers);
void save_context(pid_t thread, Context &context);
void restore_context(pid_t thread, const Context &context);
siginfo_t signal_info(pid_t thread);
/** Where the kernel writes whenever a stopped thread goes on (its rseq area): address and length, 0 if there is none. */
std::pair<uint64_t, uint64_t> kernel_area(pid_t thread);
/** The head of a thread's list of robust locks, which the kernel walks at its end; 0 where that is not told. */
uint64_t robust_list(pid_t thread);
/** The new thread's ID at a clone stop, the exit status at an exit stop. */
unsigned long event_message(pid_t thread);

} // namespace gpuwhisk::inject
