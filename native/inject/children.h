// The processes that a function starts: traced like the function, under the same static filter, and ended with it.
// What they change is their own, so that no rollback looks at it; but their parent is not used for another function.
#pragma once

#include "policy.h"
#include "stops.h"
#include "target.h"

#include <set>

namespace gpuwhisk::inject {

class Children {
public:
  /** Both outlive it. */
  Children(const Target &target, const Policy &policy) : target_(target), policy_(policy) {}

  /** Whether a thread that has stopped or ended is one of theirs: it is traced, and not the function's. */
  bool own(pid_t thread) const { return threads_.contains(thread) || !target_.has_thread(thread); }
  bool empty() const { return threads_.empty(); }
  /** Their ids since the function was loaded, of those that have ended too. */
  const std::set<pid_t> &seen() const { return seen_; }

  /** Decides on what one of them stopped for, and lets it go on. */
  void handle(const Stop &stop);
  /** Kills all; each is there until its end has been handled by `drop`. */
  void kill_all() const;
  /** Takes note of an end, or kills one that turns up. */
  void drop(const Stop &stop);

private:
  bool sent_from_within(pid_t sender) const;
  void decide_and_go_on(pid_t thread) const;

  const Target &target_;
  const Policy &policy_;
  std::set<pid_t> threads_, seen_;
};

} // namespace gpuwhisk::inject
