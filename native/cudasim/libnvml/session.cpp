#include "session.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

namespace gpuwhisk::sim {
namespace {

struct State {
  std::mutex lock;
  unsigned initialisations = 0;
  std::string socket;
  gwsim_connection connection{-1, 0};
  gwsim_node node{};
  std::map<std::pair<uint32_t, int32_t>, nvmlDevice_st> devices;
  std::map<std::pair<uint32_t, uint32_t>, nvmlGpuInstance_st> instances;
  std::map<std::pair<uint32_t, uint32_t>, nvmlComputeInstance_st> computes;
};

State &state() {
  static State *only = new State; // Never destroyed: threads may still ask while the process ends.
  return *only;
}

int open_connection(gwsim_connection *connection, gwsim_node *node) {
  const std::string &named = state().socket;
  const char *path = named.empty() ? getenv(GWSIM_SOCKET_VARIABLE) : named.c_str();
  return gwsim_connect_to(connection, path, GWSIM_MONITOR, node, nullptr);
}

/** With the lock held. */
nvmlReturn_t require_connection(State &all) {
  if (all.initialisations == 0) return NVML_ERROR_UNINITIALIZED;
  if (all.connection.descriptor >= 0) return NVML_SUCCESS;
  return from_status(open_connection(&all.connection, &all.node));
}

} // namespace

nvmlReturn_t begin() {
  State &all = state();
  std::lock_guard guard(all.lock);
  all.initialisations++;
  nvmlReturn_t result = require_connection(all);
  if (result == NVML_SUCCESS) return result;
  all.initialisations--;
  return NVML_ERROR_DRIVER_NOT_LOADED;
}

nvmlReturn_t end() {
  State &all = state();
  std::lock_guard guard(all.lock);
  if (all.initialisations == 0) return NVML_ERROR_UNINITIALIZED;
  if (--all.initialisations == 0) gwsim_close(&all.connection);
  return NVML_SUCCESS;
}

nvmlReturn_t node(gwsim_node *node) {
  State &all = state();
  std::lock_guard guard(all.lock);
  nvmlReturn_t result = require_connection(all);
  *node = all.node;
  return result;
}

nvmlReturn_t ask(gwsim_operation operation, const void *body, size_t length, void *answer, size_t size) {
  State &all = state();
  std::lock_guard guard(all.lock);
  for (int attempt = 0;; attempt++) {
    nvmlReturn_t result = require_connection(all);
    if (result != NVML_SUCCESS) return result;
    int gone = 0;
    int status = gwsim_call(&all.connection, operation, body, length, answer, size, &gone);
    if (!gone) return from_status(status);
    gwsim_close(&all.connection);
    if (attempt == 1) return NVML_ERROR_DRIVER_NOT_LOADED;
  }
}

nvmlReturn_t connect(gwsim_connection *connection) {
  std::lock_guard guard(state().lock);
  gwsim_node node{};
  return from_status(open_connection(connection, &node));
}

nvmlReturn_t from_status(int status) {
  switch (status) {
  case GWSIM_OK:
    return NVML_SUCCESS;
  case GWSIM_INVALID:
    return NVML_ERROR_INVALID_ARGUMENT;
  case GWSIM_NOT_FOUND:
    return NVML_ERROR_NOT_FOUND;
  case GWSIM_IN_USE:
    return NVML_ERROR_IN_USE;
  case GWSIM_INSUFFICIENT:
    return NVML_ERROR_INSUFFICIENT_RESOURCES;
  case GWSIM_NOT_SUPPORTED:
    return NVML_ERROR_NOT_SUPPORTED;
  case GWSIM_LOST:
    return NVML_ERROR_GPU_IS_LOST;
  case GWSIM_NO_PERMISSION:
    return NVML_ERROR_NO_PERMISSION;
  case GWSIM_DISCONNECTED:
    return NVML_ERROR_DRIVER_NOT_LOADED;
  default:
    return NVML_ERROR_UNKNOWN;
  }
}

nvmlDevice_t device_handle(uint32_t index, int32_t instance) {
  std::lock_guard guard(state().lock);
  return &state().devices.try_emplace({index, instance}, nvmlDevice_st{index, instance}).first->second;
}

nvmlGpuInstance_t instance_handle(uint32_t device, uint32_t instance) {
  std::lock_guard guard(state().lock);
  return &state().instances.try_emplace({device, instance}, nvmlGpuInstance_st{device, instance}).first->second;
}

nvmlComputeInstance_t compute_handle(uint32_t device, uint32_t instance) {
  std::lock_guard guard(state().lock);
  return &state().computes.try_emplace({device, instance}, nvmlComputeInstance_st{device, instance}).first->second;
}

nvmlReturn_t find_slice(uint32_t device, int32_t instance, gwsim_slice *slice) {
  gwsim_slices slices{};
  nvmlReturn_t result = ask(GWSIM_SLICES, gwsim_target{device, 0, 0, 0, 0}, &slices);
  if (result != NVML_SUCCESS) return result;
  for (uint32_t i = 0; i < slices.count; i++) {
    if (static_cast<int32_t>(slices.slices[i].instance) != instance) continue;
    *slice = slices.slices[i];
    return NVML_SUCCESS;
  }
  return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t copy_text(const std::string &text, char *to, unsigned int length) {
  if (to == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (text.size() >= length) return NVML_ERROR_INSUFFICIENT_SIZE;
  std::memcpy(to, text.c_str(), text.size() + 1);
  return NVML_SUCCESS;
}

} // namespace gpuwhisk::sim

extern "C" int gpuwhisk_sim_use_socket(const char *path) {
  auto &all = gpuwhisk::sim::state();
  std::lock_guard guard(all.lock);
  if (all.initialisations > 0 && all.socket != path) return -1;
  all.socket = path;
  return 0;
}
