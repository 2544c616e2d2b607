// What a request comes to.
#pragma once

#include <string>

namespace gpuwhisk::proxy {

/** The answer to a request: what the function returned if `ok`, otherwise the text of the error. */
struct Answer {
  bool ok;
  std::string text;
  bool of_several = false; // The parts of a batch's answer.
};

} // namespace gpuwhisk::proxy
