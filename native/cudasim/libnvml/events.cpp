// Events: each set has a connection of its own, which waits at the daemon.
#include "session.h"

#include <algorithm>
#include <deque>
#include <mutex>

using namespace gpuwhisk::sim;

struct nvmlEventSet_st {
  std::mutex lock; // Of a wait: there is one at a time.
  gwsim_connection connection{-1, 0};
  uint64_t after = ~0ull;
  uint32_t devices = 0;
  unsigned long long types[GWSIM_MAX_DEVICES] = {};
  std::deque<nvmlEventData_t> waiting;
};

namespace {

constexpr unsigned long long supported =
    nvmlEventTypeXidCriticalError | nvmlEventTypeDoubleBitEccError | nvmlEventMigConfigChange;

unsigned long long type_of(const gwsim_event &event) {
  if (event.type == GWSIM_EVENT_XID) return nvmlEventTypeXidCriticalError;
  return event.type == GWSIM_EVENT_ECC ? nvmlEventTypeDoubleBitEccError : nvmlEventMigConfigChange;
}

void take(nvmlEventSet_st &set, const gwsim_events &events) {
  for (uint32_t i = 0; i < events.count; i++) {
    const gwsim_event &event = events.events[i];
    set.after = event.number;
    if ((set.types[event.device] & type_of(event)) == 0) continue;
    unsigned instance = event.instance < 0 ? NVML_NO_INSTANCE : static_cast<unsigned>(event.instance);
    set.waiting.push_back({device_handle(event.device), type_of(event), event.data, instance, NVML_NO_INSTANCE});
  }
  if (events.count == 0) set.after = events.last;
}

/** Asks for what happened after the last event seen, for up to `timeout_ms`. */
nvmlReturn_t fetch(nvmlEventSet_st &set, uint32_t timeout_ms) {
  if (set.connection.descriptor < 0) {
    nvmlReturn_t result = connect(&set.connection);
    if (result != NVML_SUCCESS) return result;
  }
  gwsim_events_request request{set.after, timeout_ms, set.devices};
  gwsim_events events{};
  int gone = 0;
  int status = gwsim_call(&set.connection, GWSIM_EVENTS, &request, sizeof request, &events, sizeof events, &gone);
  if (gone) gwsim_close(&set.connection);
  if (status == GWSIM_OK) take(set, events);
  return from_status(status);
}

/** Whether a watched device is lost: a wait says so instead of waiting, as real ones do. */
nvmlReturn_t check_lost(const nvmlEventSet_st &set) {
  for (uint32_t index = 0; index < GWSIM_MAX_DEVICES; index++) {
    if ((set.devices & 1u << index) == 0) continue;
    gwsim_device device{};
    nvmlReturn_t result = ask(GWSIM_DEVICE, gwsim_target{index, 0, 0, 0, 0}, &device);
    if (result != NVML_SUCCESS) return result;
    if (device.lost) return NVML_ERROR_GPU_IS_LOST;
  }
  return NVML_SUCCESS;
}

} // namespace

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) {
  *set = new nvmlEventSet_st;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
  if (set == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  gwsim_close(&set->connection);
  delete set;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types) {
  if (device == nullptr || device->instance >= 0) return NVML_ERROR_INVALID_ARGUMENT;
  *types = supported;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set) {
  if (device == nullptr || set == nullptr || device->instance >= 0) return NVML_ERROR_INVALID_ARGUMENT;
  if ((types & ~supported) != 0) return NVML_ERROR_NOT_SUPPORTED;
  std::lock_guard guard(set->lock);
  set->devices |= 1u << device->index;
  set->types[device->index] |= types;
  // What happens from now on counts, whenever the first wait comes.
  return set->after == ~0ull ? fetch(*set, 0) : NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms) {
  if (set == nullptr || data == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  std::lock_guard guard(set->lock);
  nvmlReturn_t result = set->waiting.empty() ? fetch(*set, 0) : NVML_SUCCESS;
  if (result == NVML_SUCCESS && set->waiting.empty()) result = check_lost(*set);
  if (result == NVML_SUCCESS && set->waiting.empty()) result = fetch(*set, timeout_ms);
  if (result != NVML_SUCCESS) return result;
  if (set->waiting.empty()) return NVML_ERROR_TIMEOUT;
  *data = set->waiting.front();
  set->waiting.pop_front();
  return NVML_SUCCESS;
}
