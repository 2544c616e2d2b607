#include "payload.h"

#include "failure.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

namespace gpuwhisk::inject {
namespace {

constexpr char name[] = "gpuwhisk-function"; // As native/inject/frames.cpp looks for it.

Descriptor make_file(const Target &target, Remote &remote) {
  const Resident &resident = remote.resident();
  std::memcpy(resident.shared->entry, name, sizeof name); // Which holds nothing yet.
  int64_t number = remote.call("memfd_create", SYS_memfd_create,
                               {resident.mailbox + offsetof(gw_mailbox, entry), MFD_CLOEXEC | MFD_ALLOW_SEALING});
  resident.shared->code = number;
  std::string path = "fd/" + std::to_string(number);
  Descriptor file(openat(target.folder(), path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file) throw_errno("open the function's memory file");
  return file;
}

} // namespace

Payload::Payload(Bytes code, const Target &target, Remote &remote)
    : file_(make_file(target, remote)), length_(code.size()) {
  int file = file_.get();
  for (size_t at = 0; at < length_;) {
    ssize_t count = pwrite(file, code.data() + at, length_ - at, static_cast<off_t>(at));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw_errno("write the function's memory file");
    at += static_cast<size_t>(count);
  }
  if (fcntl(file, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
    throw_errno("seal the function's memory file");
  if (fstat(file, &identity_) < 0) throw_errno("fstat");
}

Payload::~Payload() {
  if (mapped_ != nullptr) munmap(mapped_, length_);
}

Bytes Payload::bytes() const {
  if (mapped_ == nullptr) {
    void *mapped = mmap(nullptr, length_, PROT_READ, MAP_SHARED, file_.get(), 0);
    if (mapped == MAP_FAILED) throw_errno("map the function's memory file");
    mapped_ = mapped;
  }
  return {static_cast<const std::byte *>(mapped_), length_};
}

} // namespace gpuwhisk::inject
