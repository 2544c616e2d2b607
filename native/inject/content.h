// The bytes of a snapshot: in a memory file that the process has mapped too, for reading, so that it can copy from it.
#pragma once

#include "descriptor.h"
#include "remote.h"

namespace gpuwhisk::inject {

class Content {
public:
  /**
   * Room for `bytes` in `file`, an empty memory file that the process has open as GW_SNAPSHOT_FD and that is closed
   * there.
   */
  Content(Descriptor file, size_t bytes, Remote &remote);
  ~Content();
  Content(const Content &) = delete;
  Content &operator=(const Content &) = delete;

  /** Takes `bytes` of the room; returns their offset. They are zeros. */
  size_t take(size_t bytes);
  size_t taken() const { return taken_; }
  std::byte *at(size_t offset) const { return mapped_ + offset; }
  /** Where the process has what lies at `offset`. */
  uint64_t remote_at(size_t offset) const { return remote_ + offset; }

private:
  Descriptor file_;
  size_t bytes_, taken_ = 0;
  std::byte *mapped_;
  uint64_t remote_;
};

} // namespace gpuwhisk::inject
