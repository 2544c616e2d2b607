// A process's state on the device, put away and brought back by the driver (cuCheckpointProcess…, driver 570 and newer). A
// process of its own makes the calls, so that the tracer holds no state of a device, and a call that hangs can be ended.
#pragma once

#include "descriptor.h"

#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

namespace gpuwhisk::inject {

class DeviceCheckpoint {
public:
  /**
   * Starts the helper for a process: `command` is a program that calls serve_checkpoints. Throws "unsupported" if it finds no
   * driver that can do this.
   */
  DeviceCheckpoint(const std::vector<std::string> &command, const std::vector<std::string> &environment, pid_t target);
  /** Ends the helper. */
  ~DeviceCheckpoint();
  DeviceCheckpoint(const DeviceCheckpoint &) = delete;
  DeviceCheckpoint &operator=(const DeviceCheckpoint &) = delete;

  /**
   * The process holds nothing of the device from now on; what it had there lies in its own memory. All threads of the driver
   * must run. Throws "unsupported" with the process as it was, "unrestorable" if that is not known.
   */
  void save();
  /** Has the driver bring back what the process's memory says. Does not wait. */
  void begin_restore();
  /** Waits for that. Throws "unrestorable" if it did not come to pass. */
  void await_restored();

private:
  void ask(uint32_t command, uint32_t timeout_ms);
  int32_t await(int limit_ms);
  void end() noexcept;

  pid_t target_;
  Descriptor socket_, process_; // `process_`: a pidfd of the helper.
  bool restoring_ = false;
};

/** The helper's part: serves requests from descriptor 0 until its other end is closed. Returns the exit status. */
int serve_checkpoints();

} // namespace gpuwhisk::inject
