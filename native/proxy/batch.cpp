#include "batch.h"

#include "frames.h"
#include "parts.h"

namespace gpuwhisk::proxy {

void Entries::add(const Answer &one) {
  if (parts_.size() > max_payload_bytes) return; // No answer will come of it.
  append_part(parts_, one.ok ? "result" : "error", one.text);
}

Answer Entries::answer() const {
  if (parts_.size() <= max_payload_bytes) return {.ok = true, .text = parts_, .of_several = true};
  return {false, "The action produced a response that is longer than " + std::to_string(max_payload_bytes) + " bytes."};
}

} // namespace gpuwhisk::proxy
