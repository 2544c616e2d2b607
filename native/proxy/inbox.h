// Frames that have come and were not handled.
#pragma once

#include "frames.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <sys/types.h>

namespace gpuwhisk::proxy {

/** One thread adds, another takes. While that one waits for a traced thread instead, the first frame stops that thread. */
class Inbox {
public:
  /** Ends the process if too many wait. A cancel is dropped unless a thread is watched: only runs by its own can be late. */
  void add(Frame frame);
  /** Waits for the next frame. */
  Frame take();
  /** The id that the first frame says, if it is a cancel, which is taken then. */
  std::optional<uint32_t> take_cancel();
  bool empty();
  /** From now on the first frame that comes sends `thread` of `process` SIGSTOP. False: one is there already. */
  bool watch(pid_t process, pid_t thread);
  void watch_no_more();

private:
  std::mutex lock_;
  std::condition_variable changed_;
  std::deque<Frame> frames_;
  pid_t process_ = 0, thread_ = 0; // `process_`: 0 if none is watched.
};

} // namespace gpuwhisk::proxy
