#include "inbox.h"

#include <csignal>
#include <sys/syscall.h>
#include <unistd.h>

namespace gpuwhisk::proxy {
namespace {

constexpr size_t max_waiting = 64; // Frames: the invoker has one run at a time under way.

} // namespace

void Inbox::add(Frame frame) {
  std::lock_guard guard(lock_);
  if (frame.type == Type::cancel && process_ == 0) return;
  if (frames_.size() == max_waiting) end_for_violation("too many requests at once");
  frames_.push_back(std::move(frame));
  changed_.notify_one();
  // Once: the thread is asked until all frames are taken. One that has ended is about to be reported.
  if (process_ != 0 && frames_.size() == 1) syscall(SYS_tgkill, process_, thread_, SIGSTOP);
}

Frame Inbox::take() {
  std::unique_lock guard(lock_);
  changed_.wait(guard, [this] { return !frames_.empty(); });
  Frame frame = std::move(frames_.front());
  frames_.pop_front();
  return frame;
}

std::optional<uint32_t> Inbox::take_cancel() {
  std::lock_guard guard(lock_);
  if (frames_.empty() || frames_.front().type != Type::cancel) return std::nullopt;
  uint32_t id = frames_.front().id;
  frames_.pop_front();
  return id;
}

bool Inbox::empty() {
  std::lock_guard guard(lock_);
  return frames_.empty();
}

bool Inbox::watch(pid_t process, pid_t thread) {
  std::lock_guard guard(lock_);
  if (!frames_.empty()) return false;
  process_ = process;
  thread_ = thread;
  return true;
}

void Inbox::watch_no_more() {
  std::lock_guard guard(lock_);
  process_ = 0;
}

} // namespace gpuwhisk::proxy
