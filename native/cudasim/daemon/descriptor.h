#ifndef GPUWHISK_CUDASIM_DESCRIPTOR_H
#define GPUWHISK_CUDASIM_DESCRIPTOR_H

#include <cerrno>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace gpuwhisk::sim {

[[noreturn]] inline void throw_errno(const char *what) { throw std::system_error(errno, std::generic_category(), what); }

/** Owns a file descriptor; -1: none. */
class Descriptor {
public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor &&other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor &operator=(Descriptor &&other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  int get() const { return number_; }

private:
  int number_ = -1;
};

/** Takes what a system call returned; throws if it is an error. */
inline Descriptor checked(int number, const char *what) {
  if (number < 0) throw_errno(what);
  return Descriptor(number);
}

} // namespace gpuwhisk::sim

#endif
