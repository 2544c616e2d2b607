#include "parts.h"

#include "../inject/failure.h"

#include <cstdint>
#include <cstring>

namespace gpuwhisk::proxy {
namespace {

/** Takes a length (u32, little-endian) and as many bytes from the front. */
std::string_view take(std::string_view &payload) {
  uint32_t length = 0;
  bool fits = payload.size() >= sizeof length;
  if (fits) {
    std::memcpy(&length, payload.data(), sizeof length);
    payload.remove_prefix(sizeof length);
    fits = length <= payload.size();
  }
  if (!fits) throw inject::Failure("violation", "The payload is no list of parts.");
  std::string_view taken = payload.substr(0, length);
  payload.remove_prefix(length);
  return taken;
}

void put(std::string &payload, std::string_view bytes) {
  auto length = static_cast<uint32_t>(bytes.size());
  payload.append(reinterpret_cast<const char *>(&length), sizeof length).append(bytes);
}

} // namespace

Parts parts_of(std::string_view payload) {
  Parts parts;
  while (!payload.empty()) {
    std::string_view name = take(payload);
    parts.emplace_back(name, take(payload));
  }
  return parts;
}

std::string_view part(const Parts &parts, std::string_view name) {
  for (const auto &[one, bytes] : parts)
    if (one == name) return bytes;
  return {};
}

std::vector<std::string_view> all_parts(const Parts &parts, std::string_view name) {
  std::vector<std::string_view> all;
  for (const auto &[one, bytes] : parts)
    if (one == name) all.push_back(bytes);
  return all;
}

void append_part(std::string &payload, std::string_view name, std::string_view bytes) {
  put(payload, name);
  put(payload, bytes);
}

} // namespace gpuwhisk::proxy
