// The one thread that traces a pre-warmer: ptrace takes calls from no other. Jobs run on it in order.
#pragma once

#include "../inject/prewarmer.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

namespace gpuwhisk::addon {

class TracerThread {
public:
  /** Gets the thread's pre-warmer: empty before it is launched and after it is ended. */
  using Job = std::function<void(std::unique_ptr<inject::Prewarmer> &)>;

  /** Starts the thread. It ends, and its pre-warmer with it, once this object is gone and the jobs are done. */
  TracerThread();
  ~TracerThread();
  TracerThread(const TracerThread &) = delete;
  TracerThread &operator=(const TracerThread &) = delete;

  void add(Job job);

private:
  struct Queue {
    std::mutex lock;
    std::condition_variable changed;
    std::deque<Job> jobs;
    bool closed = false;
  };
  static void serve(const std::shared_ptr<Queue> &queue);
  std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();
};

} // namespace gpuwhisk::addon
