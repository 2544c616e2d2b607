// Device memory that a process lets others open: the daemon holds the file of its pages.
#ifndef GPUWHISK_CUDASIM_EXPORTS_H
#define GPUWHISK_CUDASIM_EXPORTS_H

#include "descriptor.h"
#include "node.h"
#include "reply.h"

#include <map>

namespace gpuwhisk::sim {

class Exports {
public:
  /** Answers an IPC operation with a CUresult. `file` came with the request; afterwards it goes with the answer. */
  Reply answer(const Client &client, gwsim_operation operation, const gwsim_ipc &request, Descriptor &file);
  /** A process is gone, and what it let others open. What they have open stays theirs to see. */
  void forget(const Client &client);

private:
  struct Export {
    const Client *owner;
    const Partition *partition;
    uint64_t bytes;
    Descriptor file;
  };

  Reply publish(const Client &client, const gwsim_ipc &request, Descriptor file);
  Reply open(const Context &context, const gwsim_ipc &request, Descriptor &file) const;

  std::map<uint64_t, Export> exports_; // By key.
};

} // namespace gpuwhisk::sim

#endif
