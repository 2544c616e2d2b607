// How busy each process keeps a device.
#pragma once

#include "library.h"

#include <map>
#include <optional>

namespace gpuwhisk::nvml {

/**
 * Parts of the time in which the kernels of each process took SMs, 0–1, by pid: of those that were busy in the driver's last
 * sample after `last_seen`, which moves on. Empty optional: the device, or its mode, does not tell.
 */
std::optional<std::map<unsigned, double>> process_rates(const Library &library, nvmlDevice_t device,
                                                        unsigned long long &last_seen);

} // namespace gpuwhisk::nvml
