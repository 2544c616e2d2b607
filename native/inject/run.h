// Letting injected code run, under trace, until it comes back, fails or is late.
#pragma once

#include "children.h"
#include "payload.h"
#include "policy.h"
#include "remote.h"
#include "tracee.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace gpuwhisk::inject {

/** How a stretch of injected code ended. */
struct Ending {
  enum Kind {
    returned, // It came back to us.
    fault,    // A signal that ends a process: `signal`, `address` for memory faults.
    exited,   // It called exit: `status`.
    late,     // The deadline passed.
    gone,     // The process itself has ended.
    asked     // Something else is asked of the worker, which is stopped (Vigil).
  } kind;
  int signal = 0, status = 0;
  uint64_t address = 0;
  user_regs_struct registers{}; // Of the thread that ended it.
};

/** What to look out for while injected code runs. */
struct Vigil {
  int64_t deadline_us;
  std::function<bool()> asked = {};   // Whether there is a request: looked at when the worker gets SIGSTOP.
  std::function<bool()> is_late = {}; // Whether the deadline, which has passed, still counts; absent: it does.
};

constexpr int64_t no_deadline_us = INT64_MAX / 1'000'000;

class Run {
public:
  /** `kept`: the threads of the process that are not the function's. */
  Run(Stops &stops, const Target &target, Resident resident, const Payload &payload, const Policy &policy,
      std::set<int> kept);

  /** Lets all go on, the worker from `address` on, until it stops at `end`; the worker is stopped then. */
  Ending go(uint64_t enter, uint64_t end, uint64_t function, int64_t deadline_us);
  /** The two halves of it: lets all go on, and waits. The worker is stopped at every ending. */
  void start(uint64_t enter, uint64_t function);
  Ending wait(uint64_t end, const Vigil &vigil);
  /** Lets the worker go on from where it is. */
  void go_on();
  /** Ends every thread and process that the function started. Throws "unrestorable" if one cannot be ended. */
  void end_threads();
  /** The processes that the function started. */
  const std::set<pid_t> &children() const { return children_.seen(); }
  /** Why the process should not serve another function, or "". */
  const std::string &replace_reason() const { return replace_; }
  /** Whether a call ran that changes mappings. */
  bool mapped() const { return mapped_; }
  /** A call that was refused, for messages, or "". */
  const std::string &refused() const { return refused_; }

private:
  bool handle(const Stop &stop, uint64_t end, const Vigil &vigil, Ending &ending);
  bool handle_call(pid_t thread, Ending &ending);
  bool handle_signal(const Stop &stop, uint64_t end, const Vigil &vigil, Ending &ending);
  bool catches(int signal) const;
  void halt(pid_t thread);
  void end_children();
  void note(const Stop &stop);

  Stops &stops_;
  const Target &target_;
  Resident resident_;
  const Payload &payload_;
  Policy policy_;
  Children children_;
  std::set<int> kept_;
  std::map<pid_t, bool> stopped_; // The worker and the function's threads: whether they are stopped.
  std::string replace_, refused_;
  bool mapped_ = false;
  uint64_t caught_address_ = 0; // Of a fault that the function handled: it may raise the signal again.
};

} // namespace gpuwhisk::inject
