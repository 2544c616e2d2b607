#include "tracer_thread.h"

#include <thread>

namespace gpuwhisk::addon {

TracerThread::TracerThread() { std::thread(serve, queue_).detach(); }

TracerThread::~TracerThread() {
  std::lock_guard guard(queue_->lock);
  queue_->closed = true;
  queue_->changed.notify_one();
}

void TracerThread::add(Job job) {
  std::lock_guard guard(queue_->lock);
  queue_->jobs.push_back(std::move(job));
  queue_->changed.notify_one();
}

void TracerThread::serve(const std::shared_ptr<Queue> &queue) {
  std::unique_ptr<inject::Prewarmer> prewarmer;
  for (;;) {
    Job job;
    {
      std::unique_lock guard(queue->lock);
      queue->changed.wait(guard, [&] { return queue->closed || !queue->jobs.empty(); });
      if (queue->jobs.empty()) return;
      job = std::move(queue->jobs.front());
      queue->jobs.pop_front();
    }
    job(prewarmer);
  }
}

} // namespace gpuwhisk::addon
