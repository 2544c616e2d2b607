#include "watcher.h"

#include <chrono>

namespace gpuwhisk::nvml {
namespace {

constexpr unsigned wait_ms = 250;
/** While a device is lost. */
constexpr unsigned waits_between_looks = 4;
constexpr std::chrono::milliseconds rest_after_failure(1000);
constexpr unsigned long long wanted =
    nvmlEventTypeXidCriticalError | nvmlEventTypeDoubleBitEccError | nvmlEventMigConfigChange;

} // namespace

Watcher::Watcher(std::shared_ptr<const Library> library, std::function<void(const Event &)> tell)
    : library_(std::move(library)), tell_(std::move(tell)), devices_(list_devices(*library_)) {
  listen();
  thread_ = std::thread(&Watcher::serve, this);
}

/** Builds the event set again, of the devices that are not lost: with one that is, a wait may tell of nothing else. */
void Watcher::listen() {
  const Functions &nvml = library_->calls();
  nvmlEventSet_t made = nullptr;
  library_->check(nvml.event_set_create(&made), "event set");
  try {
    for (const Device &device : devices_) {
      if (lost_.contains(device.uuid)) continue;
      unsigned long long supported = 0;
      nvmlReturn_t result = nvml.supported_events(device.handle, &supported);
      if (result == NVML_ERROR_NOT_SUPPORTED) continue;
      library_->check(result, "kinds of events");
      if (supported & wanted)
        library_->check(nvml.register_events(device.handle, supported & wanted, made), "registration for events");
    }
  } catch (...) {
    nvml.event_set_free(made);
    throw;
  }
  if (set_) nvml.event_set_free(set_);
  set_ = made;
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
  for (unsigned waits = 1;; waits++) {
    nvmlEventData_t data{};
    nvmlReturn_t result = library_->calls().event_set_wait(set_, &data, wait_ms);
    {
      std::lock_guard guard(lock_);
      if (closed_) return;
    }
    if (result == NVML_SUCCESS) report(data);
    bool failed = result != NVML_SUCCESS && result != NVML_ERROR_TIMEOUT;
    // Some drivers say that a device is lost, and not which; of a lost one that is back none tells.
    bool is_due = result == NVML_ERROR_GPU_IS_LOST || (!lost_.empty() && waits % waits_between_looks == 0);
    if (is_due && look_for_lost()) continue;
    // Other failures show at the next sample, which is asked for every second and reports to its caller.
    if (failed && !rest()) return;
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

/** Tells of devices that are lost now; returns whether others than before are listened to. */
bool Watcher::look_for_lost() {
  std::vector<const Device *> gone;
  size_t before = lost_.size();
  for (const Device &device : devices_) {
    nvmlMemory_t memory{};
    bool is_lost = library_->calls().memory(device.handle, &memory) == NVML_ERROR_GPU_IS_LOST;
    if (!is_lost) lost_.erase(device.uuid);
    else if (lost_.insert(device.uuid).second) gone.push_back(&device);
  }
  if (gone.empty() && lost_.size() == before) return false;
  bool listens = true;
  try {
    listen();
  } catch (const Failure &) {
    listens = false; // One more is lost by now: the next look finds it.
  }
  for (const Device *device : gone) tell_({"lost", device->uuid, 0});
  return listens;
}

} // namespace gpuwhisk::nvml
