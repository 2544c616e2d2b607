#include "payload.h"

#include "failure.h"
#include "sha256.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>

namespace gpuwhisk::inject {

Payload::Payload(Bytes code)
    : file_(memfd_create("gpuwhisk-function", MFD_CLOEXEC | MFD_ALLOW_SEALING)), length_(code.size()) {
  if (!file_) throw_errno("memfd_create");
  if (code.empty()) throw Failure("payload", "The function has no code.");
  for (size_t at = 0; at < length_;) {
    ssize_t count = pwrite(file(), code.data() + at, length_ - at, static_cast<off_t>(at));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw_errno("write the function's memory file");
    at += static_cast<size_t>(count);
  }
  if (fcntl(file(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
    throw_errno("seal the function's memory file");
  if (fstat(file(), &identity_) < 0) throw_errno("fstat");
  mapped_ = mmap(nullptr, length_, PROT_READ, MAP_SHARED | MAP_POPULATE, file(), 0);
  if (mapped_ == MAP_FAILED) throw_errno("map the function's memory file");
}

Payload::~Payload() { munmap(mapped_, length_); }

void Payload::check_digest(const std::string &digest) const {
  std::string is = sha256(mapped_, length_);
  if (is != digest) throw Failure("digest", "The code's SHA-256 is " + is + ", not " + digest + " as registered.");
}

} // namespace gpuwhisk::inject
