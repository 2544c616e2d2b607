#include "events.h"

#include "node.h"

namespace gpuwhisk::sim {

void EventLog::add(uint32_t device, gwsim_event_type type, uint64_t data, int32_t instance, int32_t pid) {
  gwsim_event event{};
  event.number = ++last_;
  event.time_ns = monotonic_ns();
  event.device = device;
  event.type = type;
  event.data = data;
  event.instance = instance;
  event.pid = pid;
  events_.push_back(event);
  if (events_.size() > GWSIM_MAX_EVENTS) events_.pop_front();
}

gwsim_events EventLog::since(uint64_t after, uint32_t devices) const {
  gwsim_events answer{};
  answer.last = last_;
  for (const gwsim_event &event : events_)
    if (event.number > after && (devices >> event.device & 1) != 0) answer.events[answer.count++] = event;
  return answer;
}

} // namespace gpuwhisk::sim
