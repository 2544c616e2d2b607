// The socket by which a function is given runs without the proxy.
#pragma once

#include <array>
#include <sys/types.h>

namespace gpuwhisk::proxy {

/** It stays when a function goes: what one could leave to the next in it is looked for. */
class RunsSocket {
public:
  /** Whether a descriptor is a socket: a proxy may be started without one. */
  static bool is_socket(int descriptor);

  /** `descriptor`: -1 if there is none. */
  explicit RunsSocket(int descriptor);
  /** Whether nothing is in it in either direction, and its options are as they were. True without a socket. */
  bool is_clean() const;

private:
  /** The options of a Unix socket that setsockopt changes. */
  static constexpr size_t option_count = 16;
  using Options = std::array<std::array<char, 16>, option_count>;
  Options options() const;
  int descriptor_;
  Options before_{};
};

} // namespace gpuwhisk::proxy
