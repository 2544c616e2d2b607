#ifndef GPUWHISK_CUDASIM_OPTIONS_H
#define GPUWHISK_CUDASIM_OPTIONS_H

#include "catalogue.h"
#include "devices.h"

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace gpuwhisk::sim {

/** A flag is unknown, or its value is none. */
struct OptionsError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Options {
  std::string socket;
  std::vector<const Model *> gpus;
  uint64_t seed = 1;
  double time_scale = 1;
  double context_ms = 250, module_ms = 2, first_launch_ms = 0.2, launch_us = GPUWHISK_LAUNCH_US;
  /** Of a process's turn on a device that is not shared by MPS. */
  double turn_ms = GPUWHISK_TURN_MS;
  /** Device memory of a context, MiB; less than 0: the model's. */
  double context_mib = -1;
};

/** Throws OptionsError. */
Options parse_options(int count, char **arguments);

} // namespace gpuwhisk::sim

#endif
