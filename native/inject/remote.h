// System calls made by the process under trace: a list in one go, with one switch there and one back.
#pragma once

#include "../prewarmer/mailbox.h"
#include "stops.h"
#include "target.h"

#include <span>

namespace gpuwhisk::inject {

/** Where the resident code of a process lies, and the mailbox on our side. */
struct Resident {
  pid_t worker;
  uint64_t script, script_end; // gw_script
  uint64_t mailbox;            // In the process.
  uint64_t stack;              // A stack pointer that the script may use.
  gw_mailbox *shared;          // The same memory here.
};

class Remote {
public:
  /** Both outlive it. */
  Remote(Stops &stops, const Resident &resident) : stops_(stops), resident_(resident) {}

  /**
   * Has the worker, which is stopped and whose registers are saved elsewhere, make `calls` in order; their results
   * are filled in. Calls that its filter wants approved are. Throws "unrestorable" if the worker does something else.
   */
  void run(std::span<gw_call> calls);
  /** One call; throws "system" if it fails. */
  int64_t call(const char *what, int64_t number, std::initializer_list<uint64_t> arguments);
  const Resident &resident() const { return resident_; }

private:
  void run_part(std::span<gw_call> calls);
  Stops &stops_;
  const Resident &resident_;
};

} // namespace gpuwhisk::inject
