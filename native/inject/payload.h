// A function's code in a memory file that nobody can change any more, checked against its digest.
#pragma once

#include "descriptor.h"
#include "elf_object.h"

#include <string>
#include <sys/stat.h>

namespace gpuwhisk::inject {

class Payload {
public:
  /** Copies `code` into a memory file and seals it. */
  explicit Payload(Bytes code);
  ~Payload();
  Payload(const Payload &) = delete;
  Payload &operator=(const Payload &) = delete;

  /** Throws "digest" unless the SHA-256 of what the memory file now holds is `digest` (hexadecimal). */
  void check_digest(const std::string &digest) const;
  Bytes bytes() const { return {static_cast<const std::byte *>(mapped_), length_}; }
  int file() const { return file_.get(); }
  const struct stat &identity() const { return identity_; }

private:
  Descriptor file_;
  size_t length_;
  void *mapped_ = nullptr;
  struct stat identity_ {};
};

} // namespace gpuwhisk::inject
