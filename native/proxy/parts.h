// Payloads as lists of named parts (docs/runtime-protocol.md, Parts): the invoker reads and writes JSON, the proxy does not.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpuwhisk::proxy {

/** Names and bytes in the order of the payload, which they point into. A name may come several times. */
using Parts = std::vector<std::pair<std::string_view, std::string_view>>;

/** The parts of a payload. Throws inject::Failure "violation" if it is no such list. */
Parts parts_of(std::string_view payload);

/** The bytes of the first part of this name; empty if there is none. */
std::string_view part(const Parts &parts, std::string_view name);

/** The bytes of all parts of this name. */
std::vector<std::string_view> all_parts(const Parts &parts, std::string_view name);

/** Puts a part at the end of a payload. */
void append_part(std::string &payload, std::string_view name, std::string_view bytes);

} // namespace gpuwhisk::proxy
