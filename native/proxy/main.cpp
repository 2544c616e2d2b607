// The proxy of one pre-warmer, as a runtime of the framed protocol.
//
//   proxy KIND PREWARMER [ARGUMENT]...
//
// GPUWHISK_LIBRARIES in the environment names folders, with a colon between, whose files functions may map as code.
//
// A thread reads frames, so that the end of the invoker is seen also in the middle of a run; the main thread is the
// tracer: it starts the pre-warmer, and everything that touches it happens there, in order.
#include "../inject/failure.h"
#include "frames.h"
#include "json.h"
#include "service.h"

#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <thread>
#include <unistd.h>

namespace {

using namespace gpuwhisk;
using proxy::Frame;
using proxy::Type;

constexpr size_t max_waiting = 64; // Frames: the invoker has one run at a time under way.

class Inbox {
public:
  void add(Frame frame) {
    std::lock_guard guard(lock_);
    if (frames_.size() == max_waiting) proxy::end_for_violation("too many requests at once");
    frames_.push_back(std::move(frame));
    changed_.notify_one();
  }
  Frame take() {
    std::unique_lock guard(lock_);
    changed_.wait(guard, [this] { return !frames_.empty(); });
    Frame frame = std::move(frames_.front());
    frames_.pop_front();
    return frame;
  }

private:
  std::mutex lock_;
  std::condition_variable changed_;
  std::deque<Frame> frames_;
};

[[noreturn]] void read_frames(Inbox &inbox) {
  for (;;) {
    Frame frame = proxy::read_frame();
    switch (frame.type) {
    case Type::init:
    case Type::run:
      inbox.add(std::move(frame));
      break;
    case Type::cancel: // The run goes on to its end or its deadline; the invoker drops the answer.
      break;
    case Type::bye:
      _exit(0);
    default:
      proxy::end_for_violation("an unexpected type of frame");
    }
  }
}

void answer(const Frame &request, const proxy::Answer &answer, int64_t us) {
  std::string error = answer.ok ? "" : "{\"error\":" + proxy::quote(answer.text) + "}";
  std::string log = request.type == Type::run ? "{\"us\":" + std::to_string(us) + "}" : "{}";
  proxy::write_frames({{answer.ok ? Type::result : Type::error, request.id, answer.ok ? answer.text : error},
                       {Type::log, request.id, log}});
}

constexpr std::string_view libraries_variable = "GPUWHISK_LIBRARIES=";

/** Each with a slash at its end. */
std::vector<std::string> folders_in(std::string_view list) {
  std::vector<std::string> folders;
  while (!list.empty()) {
    size_t length = list.find(':');
    if (length != 0) folders.push_back(std::string(list.substr(0, length)) + "/");
    list.remove_prefix(length == std::string_view::npos ? list.size() : length + 1);
  }
  return folders;
}

[[noreturn]] void serve(const char *kind, const inject::LaunchOptions &launch, std::vector<std::string> libraries) {
  std::string_view name(kind);
  proxy::Service service(launch, name.starts_with("native:"), std::move(libraries));
  Inbox inbox;
  std::thread(read_frames, std::ref(inbox)).detach();
  proxy::write_frames({{Type::hello, 0, "{\"version\":1,\"kind\":" + proxy::quote(name) + "}"}});
  for (;;) {
    Frame request = inbox.take();
    int64_t started_us = inject::now_us();
    try {
      proxy::Answer given =
          request.type == Type::init ? service.init(request.payload) : service.run(request.payload);
      answer(request, given, inject::now_us() - started_us);
    } catch (const inject::Failure &failure) {
      proxy::end_for_violation(failure.what());
    }
  }
}

} // namespace

int main(int count, char **words) {
  if (count < 3) {
    std::fprintf(stderr, "usage: proxy KIND PREWARMER [ARGUMENT]...\n");
    return 2;
  }
  inject::LaunchOptions launch;
  launch.program = words[2];
  launch.arguments.assign(words + 3, words + count);
  std::vector<std::string> libraries;
  for (char **variable = environ; *variable; variable++) {
    std::string_view pair(*variable);
    if (pair.starts_with(libraries_variable)) libraries = folders_in(pair.substr(libraries_variable.size()));
    else launch.environment.emplace_back(pair);
  }
  try {
    serve(words[1], launch, std::move(libraries));
  } catch (const inject::Failure &failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}
