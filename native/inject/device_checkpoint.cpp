#include "device_checkpoint.h"

#include "checkpoint_wire.h"
#include "failure.h"
#include "stops.h"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpuwhisk::inject {
namespace {

constexpr uint32_t lock_limit_ms = 1000;
constexpr int start_limit_ms = 20'000, save_limit_ms = 15'000, restore_limit_ms = 30'000;
constexpr int first_kept = 3;

std::vector<char *> pointers(std::vector<std::string> &texts) {
  std::vector<char *> all;
  for (std::string &text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

// In the child, after fork in a process with threads: only calls that are safe there. The helper is a child of its own child,
// which ends: the tracer waits for whatever is its child.
[[noreturn]] void become(int socket, char *const *arguments, char *const *environment) {
  long helper = syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, 0UL); // Without what fork does for threads.
  if (helper != 0) _exit(helper < 0 ? 1 : 0);
  if (dup2(socket, STDIN_FILENO) < 0 || syscall(SYS_close_range, first_kept, ~0U, 0) < 0) _exit(1);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(arguments[0], arguments, environment);
  _exit(1);
}

} // namespace

DeviceCheckpoint::DeviceCheckpoint(const std::vector<std::string> &command, const std::vector<std::string> &environment,
                                   pid_t target)
    : target_(target) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) throw_errno("socketpair");
  socket_ = Descriptor(ends[0]);
  Descriptor theirs(ends[1]);
  std::vector<std::string> words = command, variables = environment;
  std::vector<char *> arguments = pointers(words), values = pointers(variables);
  pid_t child = fork();
  if (child < 0) throw_errno("fork");
  if (child == 0) become(theirs.get(), arguments.data(), values.data());
  theirs.reset();
  int status;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) throw_errno("waitpid");
  int32_t result = await(start_limit_ms);
  if (result != 0) {
    end();
    throw Failure("unsupported", "The driver takes no checkpoints: error " + std::to_string(result) + ".");
  }
}

DeviceCheckpoint::~DeviceCheckpoint() { end(); }

void DeviceCheckpoint::end() noexcept {
  if (process_) syscall(SYS_pidfd_send_signal, process_.get(), SIGKILL, nullptr, 0);
  process_.reset();
  socket_.reset();
}

void DeviceCheckpoint::ask(uint32_t command, uint32_t timeout_ms) {
  CheckpointRequest request{command, target_, timeout_ms};
  if (send(socket_.get(), &request, sizeof request, MSG_NOSIGNAL) < 0)
    throw Failure("unrestorable", "The process that takes checkpoints has ended.");
}

// The driver's answer; the first one brings the helper's process id.
int32_t DeviceCheckpoint::await(int limit_ms) {
  int64_t deadline_us = now_us() + limit_ms * 1000LL;
  CheckpointAnswer answer{};
  for (;;) {
    auto left_ms = static_cast<int>((deadline_us - now_us()) / 1000);
    pollfd one{socket_.get(), POLLIN, 0};
    int count = left_ms <= 0 ? 0 : poll(&one, 1, left_ms);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_errno("poll");
    if (count == 0) {
      end(); // The call may never return.
      throw Failure("unrestorable", "The driver does not answer in time.");
    }
    ssize_t got = recv(socket_.get(), &answer, sizeof answer, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof answer) throw Failure("unrestorable", "The process that takes checkpoints has ended.");
    break;
  }
  if (!process_) {
    process_ = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, answer.pid, 0)));
    if (!process_) throw_errno("pidfd_open");
  }
  if (answer.lost) throw Failure("unrestorable", "The driver has failed: error " + std::to_string(answer.result) + ".");
  return answer.result;
}

void DeviceCheckpoint::save() {
  await_restored();
  ask(CheckpointRequest::save, lock_limit_ms);
  int32_t result = await(save_limit_ms);
  if (result != 0)
    throw Failure("unsupported", "The driver takes no checkpoint of the process: error " + std::to_string(result) + ".");
}

void DeviceCheckpoint::begin_restore() {
  ask(CheckpointRequest::restore, 0);
  restoring_ = true;
}

void DeviceCheckpoint::await_restored() {
  if (!std::exchange(restoring_, false)) return;
  int32_t result = await(restore_limit_ms);
  if (result != 0)
    throw Failure("unrestorable", "The driver does not restore the process: error " + std::to_string(result) + ".");
}

} // namespace gpuwhisk::inject
