// Waiting for what happens to devices, on a thread of its own.
#pragma once

#include "device.h"

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

namespace gpuwhisk::nvml {

struct Event {
  const char *type; // xid, ecc, mig-changed, lost
  std::string device;
  unsigned long long code; // Of an Xid.
};

class Watcher {
public:
  /**
   * Watches the devices that are there now, for what each can tell; one that is lost is told, and watched again once it is
   * back. `tell` is called on the watcher's thread and must not throw. Throws Failure.
   */
  Watcher(std::shared_ptr<const Library> library, std::function<void(const Event &)> tell);
  /** Waits for the thread: as long as one wait for events takes. */
  ~Watcher();
  Watcher(const Watcher &) = delete;
  Watcher &operator=(const Watcher &) = delete;

private:
  void listen();
  void serve();
  void report(const nvmlEventData_t &data);
  bool look_for_lost();
  bool rest();

  std::shared_ptr<const Library> library_;
  std::function<void(const Event &)> tell_;
  std::vector<Device> devices_;
  std::set<std::string> lost_;
  nvmlEventSet_t set_ = nullptr;
  std::mutex lock_;
  std::condition_variable changed_;
  bool closed_ = false;
  std::thread thread_;
};

} // namespace gpuwhisk::nvml
