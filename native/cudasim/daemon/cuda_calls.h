// Contexts and memory: what a process asks for that uses CUDA. Answers are CUresults.
#ifndef GPUWHISK_CUDASIM_CUDA_CALLS_H
#define GPUWHISK_CUDASIM_CUDA_CALLS_H

#include "node.h"
#include "reply.h"
#include "simulation.h"

namespace gpuwhisk::sim {

/** MPS clients of a device, at most (before CUDA 13.1). */
constexpr uint32_t max_mps_clients = 48;

Reply answer_cuda(Node &node, Simulation &simulation, Client &client, gwsim_operation operation, std::string_view body);

/** Gives back a context and all of its memory. */
void destroy_context(Client &client, uint32_t id);

} // namespace gpuwhisk::sim

#endif
