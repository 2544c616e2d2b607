// The process that calls the driver for DeviceCheckpoint.
#include "checkpoint_wire.h"
#include "device_checkpoint.h"

#include <cerrno>
#include <dlfcn.h>
#include <sys/socket.h>
#include <unistd.h>

namespace gpuwhisk::inject {
namespace {

/** Of the driver API, as cuda.h declares it; each call takes a pointer to settings of 64 bytes. */
struct Driver {
  struct alignas(8) Settings {
    uint32_t timeout_ms;
    unsigned char rest[60];
  };
  using Command = int (*)(int pid, Settings *settings);
  int (*init)(unsigned flags) = nullptr;
  Command lock = nullptr, checkpoint = nullptr, restore = nullptr, unlock = nullptr;

  int32_t open() {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) return -1;
    init = reinterpret_cast<decltype(init)>(dlsym(library, "cuInit"));
    lock = reinterpret_cast<Command>(dlsym(library, "cuCheckpointProcessLock"));
    checkpoint = reinterpret_cast<Command>(dlsym(library, "cuCheckpointProcessCheckpoint"));
    restore = reinterpret_cast<Command>(dlsym(library, "cuCheckpointProcessRestore"));
    unlock = reinterpret_cast<Command>(dlsym(library, "cuCheckpointProcessUnlock"));
    if (!init || !lock || !checkpoint || !restore || !unlock) return -1;
    return init(0);
  }
};

int call(Driver::Command command, int pid, uint32_t timeout_ms = 0) {
  Driver::Settings settings{};
  settings.timeout_ms = timeout_ms;
  return command(pid, &settings);
}

CheckpointAnswer carry_out(const Driver &driver, const CheckpointRequest &request) {
  CheckpointAnswer answer{0, getpid(), 0};
  if (request.command == CheckpointRequest::save) {
    answer.result = call(driver.lock, request.target, request.timeout_ms);
    if (answer.result != 0) return answer;
    answer.result = call(driver.checkpoint, request.target);
    if (answer.result != 0) answer.lost = call(driver.unlock, request.target) != 0;
    return answer;
  }
  answer.result = call(driver.restore, request.target);
  if (answer.result == 0) answer.result = call(driver.unlock, request.target);
  answer.lost = answer.result != 0;
  return answer;
}

bool say(const CheckpointAnswer &answer) {
  return send(STDIN_FILENO, &answer, sizeof answer, MSG_NOSIGNAL) == sizeof answer;
}

} // namespace

int serve_checkpoints() {
  Driver driver;
  int32_t opened = driver.open();
  if (!say({opened, getpid(), 0}) || opened != 0) return 1;
  for (;;) {
    CheckpointRequest request;
    ssize_t got = recv(STDIN_FILENO, &request, sizeof request, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof request) return 0;
    if (!say(carry_out(driver, request))) return 0;
  }
}

} // namespace gpuwhisk::inject
