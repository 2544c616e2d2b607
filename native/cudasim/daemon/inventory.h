// Answers to who looks at the devices or changes their geometry.
#ifndef GPUWHISK_CUDASIM_INVENTORY_H
#define GPUWHISK_CUDASIM_INVENTORY_H

#include "node.h"
#include "reply.h"
#include "sampler.h"

namespace gpuwhisk::sim {

/** Throws Refusal. `operation` is one of looking, or of geometry and compute mode. */
Reply answer_inventory(Node &node, const Sampler &sampler, gwsim_operation operation, std::string_view body);

gwsim_process describe_process(const std::vector<const Context *> &contexts);

} // namespace gpuwhisk::sim

#endif
