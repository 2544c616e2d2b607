#include "watcher.h"

#include <chrono>

namespace gpuwhisk::nvml {
namespace {

constexpr unsigned wait_ms = 250;
constexpr std::chrono::milliseconds rest_after_failure(1000);
constexpr unsigned long long wanted =
    nvmlEventTypeXidCriticalError | nvmlEventTypeDoubleBitEccError | nvmlEventMigConfigChange;

} // namespace

Watcher::Watcher(std::shared_ptr<const Library> library, std::function<void(const Event &)> tell)
    : library_(std::move(library)), tell_(std::move(tell)), devices_(list_devices(*library_)) {
  const Functions &nvml = library_->calls();
  library_->check(nvml.event_set_create(&set_), "event set");
  try {
    for (const Device &device : devices_) {
      unsigned long long supported = 0;
      nvmlReturn_t result = nvml.supported_events(device.handle, &supported);
      if (result == NVML_ERROR_NOT_SUPPORTED) continue;
      library_->check(result, "kinds of events");
      if (supported & wanted)
        library_->check(nvml.register_events(device.handle, supported & wanted, set_), "registration for events");
    }
    thread_ = std::thread(&Watcher::serve, this);
  } catch (...) {
    nvml.event_set_free(set_);
    throw;
  }
}

Watcher::~Watcher() {
  {
    std::lock_guard guard(lock_);
    closed_ = true;
  }
  changed_.notify_one();
  thread_.join();
  library_->calls().event_set_free(set_);
}

/** Returns whether to go on, after a pause that the end cuts short. */
bool Watcher::rest() {
  std::unique_lock guard(lock_);
  return !changed_.wait_for(guard, rest_after_failure, [&] { return closed_; });
}

void Watcher::serve() {
  for (;;) {
    nvmlEventData_t data{};
    nvmlReturn_t result = library_->calls().event_set_wait(set_, &data, wait_ms);
    {
      std::lock_guard guard(lock_);
      if (closed_) return;
    }
    if (result == NVML_SUCCESS) report(data);
    if (result == NVML_SUCCESS || result == NVML_ERROR_TIMEOUT) continue;
    if (result == NVML_ERROR_GPU_IS_LOST) report_lost();
    // Other failures show at the next sample, which is asked for every second and has somebody to tell.
    if (!rest()) return;
  }
}

void Watcher::report(const nvmlEventData_t &data) {
  for (const Device &device : devices_) {
    if (device.handle != data.device) continue;
    if (data.eventType == nvmlEventTypeXidCriticalError) tell_({"xid", device.uuid, data.eventData});
    else if (data.eventType == nvmlEventTypeDoubleBitEccError) tell_({"ecc", device.uuid, 0});
    else if (data.eventType == nvmlEventMigConfigChange) tell_({"mig-changed", device.uuid, 0});
  }
}

/** The library says that some device is lost, but not which. */
void Watcher::report_lost() {
  for (const Device &device : devices_) {
    nvmlMemory_t memory{};
    bool lost = library_->calls().memory(device.handle, &memory) == NVML_ERROR_GPU_IS_LOST;
    if (!lost) lost_.erase(device.uuid);
    else if (lost_.insert(device.uuid).second) tell_({"lost", device.uuid, 0});
  }
}

} // namespace gpuwhisk::nvml
