// A function's code in a memory file of its process that cannot be changed any more.
#pragma once

#include "descriptor.h"
#include "elf_object.h"
#include "remote.h"

#include <string>
#include <sys/stat.h>

namespace gpuwhisk::inject {

class Payload {
public:
  /**
   * Has the process, which is stopped, make a memory file, and fills and seals that: the mailbox names its descriptor
   * there. Throws "system" if the file cannot be made.
   */
  Payload(Bytes code, const Target &target, Remote &remote);
  ~Payload();
  Payload(const Payload &) = delete;
  Payload &operator=(const Payload &) = delete;

  /** The code. Throws "system" if it cannot be mapped. */
  Bytes bytes() const;
  const struct stat &identity() const { return identity_; }

private:
  Descriptor file_;
  size_t length_;
  mutable void *mapped_ = nullptr; // From the first need of it on, which most functions do not have.
  struct stat identity_ {};
};

} // namespace gpuwhisk::inject
