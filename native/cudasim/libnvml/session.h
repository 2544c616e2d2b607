// What the stand-in's libnvidia-ml.so.1 keeps: how often it was initialised, its connection, and its handles.
#ifndef GPUWHISK_CUDASIM_LIBNVML_SESSION_H
#define GPUWHISK_CUDASIM_LIBNVML_SESSION_H

#include "../connection.h"
#include "../include/nvml.h"

#include <string>

/** A device, or with `instance` not negative the MIG device of that GPU instance. Handles live as long as the library. */
struct nvmlDevice_st {
  uint32_t index;
  int32_t instance;
};

struct nvmlGpuInstance_st {
  uint32_t device, instance;
};

struct nvmlComputeInstance_st {
  uint32_t device, instance;
};

namespace gpuwhisk::sim {

/** Counts one more initialisation; the first connects. */
nvmlReturn_t begin();
nvmlReturn_t end();

/** What the daemon said of its node at the connection. */
nvmlReturn_t node(gwsim_node *node);

/** Asks the daemon; a broken connection is made once more. Any thread. */
nvmlReturn_t ask(gwsim_operation operation, const void *body, size_t length, void *answer, size_t size);

template <typename Answer> nvmlReturn_t ask(gwsim_operation operation, const gwsim_target &target, Answer *answer) {
  return ask(operation, &target, sizeof target, answer, sizeof *answer);
}
inline nvmlReturn_t tell(gwsim_operation operation, const gwsim_target &target) {
  return ask(operation, &target, sizeof target, nullptr, 0);
}

inline gwsim_target target_of(nvmlDevice_t device) {
  gwsim_target target{};
  target.device = device->index;
  return target;
}

/** Another connection of this process, for calls that take long; the caller closes it. */
nvmlReturn_t connect(gwsim_connection *connection);

nvmlReturn_t from_status(int status);

nvmlDevice_t device_handle(uint32_t index, int32_t instance = -1);
nvmlGpuInstance_t instance_handle(uint32_t device, uint32_t instance);
nvmlComputeInstance_t compute_handle(uint32_t device, uint32_t instance);

/** The MIG device's row; NVML_ERROR_NOT_FOUND where it is gone. */
nvmlReturn_t find_slice(uint32_t device, int32_t instance, gwsim_slice *slice);

/** Copies text with its end; NVML_ERROR_INSUFFICIENT_SIZE where it does not fit. */
nvmlReturn_t copy_text(const std::string &text, char *to, unsigned int length);

} // namespace gpuwhisk::sim

/**
 * Points the library at a daemon other than the environment's, before its initialisation. Returns 0, or -1 where it is
 * initialised with another one: there is one to a process.
 */
extern "C" __attribute__((visibility("default"))) int gpuwhisk_sim_use_socket(const char *path);

#endif
