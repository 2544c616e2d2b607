// Frames of the runtime protocol, as the Node.js runtime's addon and the proxy of pre-warmers take them apart. Both must
// see the same ones, whatever pieces they come in.
extern "C" {
#include "../channel/inbox.h"
}
#include "../proxy/frames.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

using gpuwhisk::proxy::Frame;

namespace {

std::string_view unread;
size_t piece = 1; // Read at once, at most.

struct Ended {
  int status;
};

struct Seen {
  std::vector<std::string> frames; // Type, id and payload.
  bool too_long = false;
};

std::string describe(uint8_t type, uint32_t id, std::string_view payload) {
  return std::to_string(type) + ' ' + std::to_string(id) + ' ' + std::string(payload);
}

Seen seen_by_proxy() {
  Seen seen;
  try {
    for (;;) {
      Frame frame = gpuwhisk::proxy::read_frame();
      seen.frames.push_back(describe(static_cast<uint8_t>(frame.type), frame.id, frame.payload));
    }
  } catch (const Ended &ended) {
    seen.too_long = ended.status != 0;
  }
  return seen;
}

/** The payload again, of which a run's value has been told apart. */
std::string whole(const frame &one) {
  std::string text(one.text, one.bytes);
  if (one.rest == nullptr) return text;
  if (one.rest_bytes < 2 || one.rest[0] != '{') std::abort();
  return "{\"value\":" + text + ',' + std::string(one.rest + 1, one.rest_bytes - 1);
}

Seen seen_by_addon() {
  Seen seen;
  inbox inbox{};
  for (arrival came = ARRIVED; came == ARRIVED; came = inbox_read(&inbox, 3)) {
    frame one;
    size_t too_long = 0;
    while (inbox.bytes != nullptr && inbox_next(&inbox, &one, &too_long))
      seen.frames.push_back(describe(one.type, one.id, whole(one)));
    if ((seen.too_long = too_long != 0)) break;
  }
  std::free(inbox.bytes);
  return seen;
}

// Room for a payload is made when its length is known, which takes long for one of megabytes.
bool announces_much(std::string_view bytes) {
  while (bytes.size() >= 4) {
    uint32_t length;
    std::memcpy(&length, bytes.data(), sizeof length);
    if (length > gpuwhisk::proxy::max_payload_bytes) return false;
    if (length > 1 << 16) return true;
    bytes.remove_prefix(std::min(bytes.size(), FRAME_HEADER + size_t{length}));
  }
  return false;
}

} // namespace

// In place of the system's, for the two files under test.
extern "C" ssize_t fuzz_read(int, void *to, size_t length) {
  size_t count = std::min({length, piece, unread.size()});
  std::memcpy(to, unread.data(), count);
  unread.remove_prefix(count);
  return static_cast<ssize_t>(count);
}
extern "C" void fuzz_exit(int status) { throw Ended{status}; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  piece = data[0] + size_t{1};
  std::string_view bytes(reinterpret_cast<const char *>(data) + 1, size - 1);
  unread = bytes;
  if (announces_much(bytes)) return -1;
  Seen one = seen_by_proxy();
  unread = bytes;
  Seen other = seen_by_addon();
  if (one.frames != other.frames || one.too_long != other.too_long) std::abort();
  return 0;
}
