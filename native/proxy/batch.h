// The answer to a batch whose requests ran one after the other (docs/runtime-protocol.md, Parts).
#pragma once

#include "answer.h"

namespace gpuwhisk::proxy {

/** The answers to the requests, put together. */
class Entries {
public:
  void add(const Answer &one);
  /** All of them; an error if they are longer than a frame may be. */
  Answer answer() const;

private:
  std::string parts_;
};

} // namespace gpuwhisk::proxy
