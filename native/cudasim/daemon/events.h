#ifndef GPUWHISK_CUDASIM_EVENTS_H
#define GPUWHISK_CUDASIM_EVENTS_H

#include "../wire.h"

#include <cstdint>
#include <deque>

namespace gpuwhisk::sim {

/** The last events of all devices; older ones than it keeps are forgotten. */
class EventLog {
public:
  void add(uint32_t device, gwsim_event_type type, uint64_t data, int32_t instance, int32_t pid);
  uint64_t last() const { return last_; }
  /** Those after number `after` of the devices whose bits are set. */
  gwsim_events since(uint64_t after, uint32_t devices) const;

private:
  std::deque<gwsim_event> events_;
  uint64_t last_ = 0;
};

} // namespace gpuwhisk::sim

#endif
