// What a process holds besides memory: descriptors, threads, signal handlers, timers. How it was at the safe point,
// and the system calls that put it back.
#pragma once

#include "remote.h"

#include <csignal>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gpuwhisk::inject {

class ProcessState {
public:
  /** Takes the state; the worker is stopped. */
  ProcessState(const Target &target, Remote &remote);

  const std::set<int> &threads() const { return threads_; }

  /** Adds the calls that undo what the function left. Throws "unrestorable" where no call can. */
  void plan(std::vector<gw_call> &calls);
  /** Throws "unrestorable" if descriptors, threads, handlers or pending signals differ from those before. */
  void verify() const;

private:
  // What the worker has told the kernel of its memory.
  struct Registered {
    std::pair<uint64_t, uint64_t> sequences;
    uint64_t robust_list;
    bool operator==(const Registered &) const = default;
  };
  Registered registered() const;
  struct Signals {
    std::string pending, shared_pending, ignored, caught; // `pending`: of each thread.
    bool operator==(const Signals &) const = default;
  };
  Signals signals() const;
  void plan_handlers(std::vector<gw_call> &calls);

  const Target &target_;
  Remote &remote_;
  std::map<int, std::string> descriptors_; // Number: what it refers to.
  std::set<int> threads_;
  std::vector<Descriptor> statuses_; // Of the threads, in /proc.
  Signals signals_;
  Registered registered_;
  struct Flags {
    uint64_t status, own; // O_NONBLOCK and the like; FD_CLOEXEC.
  };
  std::map<int, Flags> flags_; // Of descriptors.
  stack_t signal_stack_{};
  bool changed_ = true;
  struct Handler { // As the kernel has it.
    uint64_t function, flags, restorer, mask;
  };
  std::map<int, Handler> handlers_; // Those that are not the default.
};

} // namespace gpuwhisk::inject
