// The devices that an MPS daemon serves, as its environment names them.
#ifndef GPUWHISK_CUDASIM_MPS_CONTROL_NODE_H
#define GPUWHISK_CUDASIM_MPS_CONTROL_NODE_H

#include "../connection.h"

#include <stdexcept>
#include <string>
#include <vector>

namespace gpuwhisk::sim {

/** Something that cannot be done, in words for the user of the command. */
class Refused : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/** A device of the node, or one GPU instance of it. */
struct Served {
  uint32_t index;
  int32_t instance; // -1: all of it.
  std::string uuid; // GPU-… or MIG-….
};

/** Asks the simulation's daemon. Throws Refused with `what` where it says no, std::runtime_error where it is gone. */
void ask(gwsim_connection &connection, gwsim_operation operation, const void *body, size_t length, void *answer,
         size_t size, const char *what);

/**
 * What CUDA_VISIBLE_DEVICES names, in its order: indices, UUIDs or their beginnings; all devices where `visible` is null.
 * As with programs, nothing that comes after an unknown name counts.
 */
std::vector<Served> served_devices(gwsim_connection &connection, uint32_t device_count, const char *visible);

} // namespace gpuwhisk::sim

#endif
