// Cutting devices. The caller has asked whether that is allowed on this machine.
#pragma once

#include "device.h"

namespace gpuwhisk::nvml {

/** Throws Failure NVML_ERROR_IN_USE while processes use the device, and where the change waits for a reset. */
void set_mig(const Library &library, nvmlDevice_t device, bool enabled);

/** A GPU instance at `start_slot`, or where there is room, with one compute instance over all of it. */
Slice create_slice(const Library &library, nvmlDevice_t device, const std::string &profile,
                   std::optional<unsigned> start_slot);

/** Throws Failure NVML_ERROR_IN_USE while processes use it, NVML_ERROR_NOT_FOUND where there is no such slice. */
void destroy_slice(const Library &library, nvmlDevice_t device, const std::string &uuid);

void set_exclusive(const Library &library, nvmlDevice_t device, bool exclusive);

} // namespace gpuwhisk::nvml
