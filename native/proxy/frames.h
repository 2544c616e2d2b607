// Frames of the runtime protocol (docs/runtime-protocol.md) on descriptor 3.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpuwhisk::proxy {

inline constexpr uint32_t max_payload_bytes = 64 << 20;

enum class Type : uint8_t {
  hello = 1, init = 2, run = 3, result = 4, error = 5, log = 6, cancel = 7, bye = 8, unload = 9, check = 10, results = 11
};

struct Frame {
  Type type;
  uint32_t id;
  std::string payload;
};

/** Ends the process as the protocol asks: a message on descriptor 2, status 70. */
[[noreturn]] void end_for_violation(const char *what);

/** The next frame from the invoker. Ends the process at the end of file, and for what no frame may be. */
Frame read_frame();

/** Writes all in one go; ends the process if the reader is gone. */
void write_frames(const std::vector<Frame> &frames);

} // namespace gpuwhisk::proxy
