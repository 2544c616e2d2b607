// What the proxy says to the system calls that the static filter leaves to it (native/prewarmer/filter.c).
#pragma once

#include "maps.h"
#include "target.h"

#include <set>
#include <string>
#include <sys/stat.h>
#include <sys/user.h>
#include <vector>

namespace gpuwhisk::inject {

struct Policy {
  std::vector<std::string> library_folders; // With the system's: where code may be mapped from. End in a slash.
  // Code made at run time (a JIT) is allowed, never writable and executable at once; the pre-warmer is replaced then.
  bool executable_memory = false;
  // Memory that comes from a template's file: emptied it would hold what the template has, and grown what lies next to it there.
  std::vector<Range> from_template;
};

struct Verdict {
  enum Kind {
    allow,
    allow_and_replace, // Allowed, but no rollback undoes it: the pre-warmer is not used again. `what` says why.
    refuse,            // The call fails with `error`.
    end                // exit: the function is over, the process is not.
  } kind;
  int error = 0;
  const char *what = ""; // For messages: the call, or what the function did.
  bool maps = false;     // The call changes mappings.
};

struct CallSite {
  pid_t thread, worker;
  bool alone;                 // The function has no thread but the worker.
  const struct stat &payload; // The memory file that holds the function.
  const std::set<pid_t> &children; // Processes of the function.
};

Verdict decide(const Policy &policy, const Target &target, const user_regs_struct &registers, const CallSite &site);

/** What a call of a process that the function started fails with; 0: it is made. `children`: all of them. */
int refusal_of_child(const Policy &policy, const Target &target, const user_regs_struct &registers,
                     const std::set<pid_t> &children);

} // namespace gpuwhisk::inject
