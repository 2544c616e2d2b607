// Waiting for traced threads, with a deadline.
#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>
#include <optional>
#include <sys/types.h>

namespace gpuwhisk::inject {

/** Microseconds of the monotonic clock. */
int64_t now_us();

/** What waitpid said of one traced thread. */
struct Stop {
  pid_t thread;
  int status;
  bool ended() const;        // The thread is gone.
  bool at_signal(int) const; // About to get that signal.
  int signal() const;        // The signal it is about to get, or 0.
  int event() const;         // PTRACE_EVENT_*, or 0.
  bool at_call() const;      // A stop asked for by resume_to_call.
};

/**
 * Collects the stops of everything that the calling thread traces: one tracer thread has one process, and one of
 * these. waitpid has no time limit, so that a timer of this thread interrupts it.
 */
class Stops {
public:
  Stops();
  ~Stops();
  Stops(const Stops &) = delete;
  Stops &operator=(const Stops &) = delete;

  /** The next stop of `thread`, or of any (-1); none when the deadline (now_us) has passed. */
  std::optional<Stop> next(int64_t deadline_us, pid_t thread = -1);
  /** Ends the timer; until then it interrupts other system calls of this thread after the deadline. */
  void rest();

private:
  void set_timer(int64_t deadline_us);
  timer_t timer_;
  int64_t armed_us_ = 0;
};

} // namespace gpuwhisk::inject
