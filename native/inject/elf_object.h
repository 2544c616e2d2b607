// Shared objects: what is refused before a byte of one is given to a pre-warmer, and the names of addresses in one.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace gpuwhisk::inject {

using Bytes = std::span<const std::byte>;

/**
 * Throws "payload" unless this is a whole shared object for this machine that keeps code and data apart: no
 * segment both writable and executable, no relocations in code, no executable stack.
 */
void check_object(Bytes object);

/** "name+0x12" of the function at `offset` (as it is mapped); "+0x1234" without symbols. */
std::string name_in_object(Bytes object, uint64_t offset);

} // namespace gpuwhisk::inject
