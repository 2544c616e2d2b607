#include "content.h"

#include "failure.h"

#include <fcntl.h>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace gpuwhisk::inject {

Content::Content(Descriptor file, size_t bytes, Remote &remote) : file_(std::move(file)), bytes_(bytes) {
  if (ftruncate(file_.get(), static_cast<off_t>(bytes)) < 0) throw_errno("ftruncate");
  void *mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (mapped == MAP_FAILED) throw_errno("map the snapshot");
  mapped_ = static_cast<std::byte *>(mapped);
  // From now on no other process gets a mapping that can be written, or that can be made so.
  if (fcntl(file_.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
    throw_errno("seal the snapshot");
  remote_ = static_cast<uint64_t>(
      remote.call("map the snapshot", SYS_mmap, {0, bytes, PROT_READ, MAP_SHARED, GW_SNAPSHOT_FD, 0}));
  remote.call("close the snapshot", SYS_close, {GW_SNAPSHOT_FD});
}

Content::~Content() { munmap(mapped_, bytes_); }

size_t Content::take(size_t bytes) {
  if (bytes > bytes_ - taken_) throw std::length_error("The snapshot has no room left.");
  size_t offset = taken_;
  taken_ += bytes;
  return offset;
}

} // namespace gpuwhisk::inject
