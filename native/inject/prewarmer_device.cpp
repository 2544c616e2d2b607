// A CUDA context that the driver puts away and brings back: the host's memory goes back to what it was while the process held
// nothing of the device, and with it all that the driver knew then.
#include "failure.h"
#include "prewarmer.h"

#include <cstdio>
#include <unistd.h>

namespace gpuwhisk::inject {

const char *Prewarmer::cuda() const {
  if (device_) return "checkpoint";
  switch (launched_.hello.cuda) {
  case GW_CUDA_RESET:
    return "reset";
  case GW_CUDA_OWNER:
    return "owner";
  case GW_CUDA_KEPT:
    return "ends";
  default:
    return "none";
  }
}

// At Ready, before the snapshot. A driver that refuses leaves the process as it was.
void Prewarmer::save_device(const LaunchOptions &options) {
  if (launched_.hello.cuda == GW_NO_CUDA || !launched_.hello.checkpoint || options.checkpoint.empty()) return;
  try {
    device_ = std::make_unique<DeviceCheckpoint>(options.checkpoint, options.environment, launched_.pid);
    device_->save();
  } catch (const Failure &failure) {
    device_.reset();
    if (failure.code != "unsupported") throw;
    dprintf(STDERR_FILENO, "The CUDA context is kept without checkpoints. %s\n", failure.what());
  }
}

// What was begun with the last rollback is over; a process that cannot be restored is ended.
void Prewarmer::settle_device() {
  if (!device_) return;
  try {
    device_->await_restored();
  } catch (...) {
    end();
    throw;
  }
}

// They wait for the driver's next command, as at the snapshot. Throws "unrestorable" if there are others.
void Prewarmer::stop_drivers() {
  std::set<int> known = threads_;
  for (const auto &[thread, context] : drivers_) known.insert(thread);
  if (target_.threads() != known)
    throw Failure("unrestorable", "The CUDA driver has other threads than before the function.");
  for (const auto &[thread, context] : drivers_) seize(thread);
  for (const auto &[thread, context] : drivers_) interrupt(thread);
  for (const auto &[thread, context] : drivers_) await_stop(thread);
}

void Prewarmer::release_drivers() {
  for (const auto &[thread, context] : drivers_) {
    restore_context(thread, context);
    detach(thread);
  }
}

} // namespace gpuwhisk::inject
