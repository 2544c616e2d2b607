#include "failure.h"

#include <cerrno>
#include <cstring>

namespace gpuwhisk::inject {

void throw_errno(const std::string &what) {
  int error = errno;
  if (error == ESRCH) throw Failure("gone", what + ": the process has ended");
  throw Failure("system", what + ": " + std::strerror(error));
}

} // namespace gpuwhisk::inject
