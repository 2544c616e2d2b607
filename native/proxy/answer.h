// What a request comes to.
#pragma once

#include <string>

namespace gpuwhisk::proxy {

/** The answer to a request: JSON if `ok`, otherwise the text of the error. */
struct Answer {
  bool ok;
  std::string text;
};

inline constexpr const char *no_dictionary = "The action did not return a dictionary or array."; // OpenWhisk's text.

} // namespace gpuwhisk::proxy
