#include "node.h"

#include <algorithm>
#include <ctime>

namespace gpuwhisk::sim {

Node::Node(const Options &options) : options(options) {
  for (const Model *model : options.gpus)
    gpus.push_back(std::make_unique<Gpu>(*model, static_cast<uint32_t>(gpus.size()), options.seed));
}

Gpu &Node::gpu(uint32_t index) {
  if (index >= gpus.size()) throw Refusal{GWSIM_INVALID};
  return *gpus[index];
}

MpsDaemon *Node::find_mps(std::string_view pipe_directory) {
  auto found = std::ranges::find(mps, pipe_directory, &MpsDaemon::pipe_directory);
  return found == mps.end() ? nullptr : &*found;
}

std::vector<Context *> Node::contexts_of(const MpsDaemon &daemon) {
  std::vector<Context *> contexts;
  for (Client &client : clients)
    for (auto &[id, context] : client.contexts)
      if (context.mps == &daemon) contexts.push_back(&context);
  return contexts;
}

uint64_t monotonic_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000 + static_cast<uint64_t>(now.tv_nsec);
}

} // namespace gpuwhisk::sim
