#include "frames.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sys/socket.h>
#include <unistd.h>

namespace gpuwhisk::proxy {
namespace {

constexpr int channel = 3;
constexpr size_t header_bytes = 9;
constexpr int exit_violation = 70;

void read_all(char *to, size_t length) {
  while (length > 0) {
    ssize_t count = read(channel, to, length);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) _exit(0); // The invoker is gone; the pre-warmer dies with its tracer.
    to += count, length -= static_cast<size_t>(count);
  }
}

} // namespace

void end_for_violation(const char *what) {
  dprintf(STDERR_FILENO, "Protocol violation: %s\n", what);
  _exit(exit_violation);
}

Frame read_frame() {
  char header[header_bytes];
  read_all(header, sizeof header);
  uint32_t length;
  Frame frame;
  std::memcpy(&length, header, sizeof length);
  frame.type = static_cast<Type>(header[4]);
  std::memcpy(&frame.id, header + 5, sizeof frame.id);
  if (length > max_payload_bytes) end_for_violation("a frame is too long");
  frame.payload.resize(length);
  read_all(frame.payload.data(), length);
  return frame;
}

void write_frames(const std::vector<Frame> &frames) {
  std::string bytes;
  for (const Frame &frame : frames) {
    char header[header_bytes];
    auto length = static_cast<uint32_t>(frame.payload.size());
    std::memcpy(header, &length, sizeof length);
    header[4] = static_cast<char>(frame.type);
    std::memcpy(header + 5, &frame.id, sizeof frame.id);
    bytes.append(header, sizeof header).append(frame.payload);
  }
  for (std::string_view rest = bytes; !rest.empty();) {
    ssize_t count = send(channel, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) _exit(0);
    rest.remove_prefix(static_cast<size_t>(count));
  }
}

} // namespace gpuwhisk::proxy
