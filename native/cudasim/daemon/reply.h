#ifndef GPUWHISK_CUDASIM_REPLY_H
#define GPUWHISK_CUDASIM_REPLY_H

#include "../wire.h"

#include <cstring>
#include <string>
#include <string_view>

namespace gpuwhisk::sim {

/** What a request is answered with. */
struct Reply {
  int32_t status = GWSIM_OK;
  std::string body;
  /** Not before this time (CLOCK_MONOTONIC, ns); 0: now. */
  uint64_t due_ns = 0;
};

template <typename Body> Reply reply_with(const Body &body, size_t length = sizeof(Body)) {
  return {GWSIM_OK, std::string(reinterpret_cast<const char *>(&body), length)};
}

/** A request's body; what is missing of it is zero. Texts in it are NUL-ended only if their sender did so. */
template <typename Body> Body parse_body(std::string_view bytes) {
  Body body{};
  std::memcpy(&body, bytes.data(), std::min(bytes.size(), sizeof body));
  return body;
}

/** A fixed text field, up to its NUL if there is one. */
template <size_t size> std::string text_of(const char (&field)[size]) { return {field, strnlen(field, size)}; }

} // namespace gpuwhisk::sim

#endif
