#include "frames.h"

#include "maps.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace gpuwhisk::inject {
namespace {

constexpr size_t max_frames = 32;
// The file of a function, as its mappings are named.
constexpr const char *payload_name = "/memfd:gpuwhisk-function (deleted)";

// The offset in an object at which its first mapping lies is its base: symbols count from there.
std::string name_of(const std::vector<Mapping> &mappings, const Payload &payload, uint64_t address) {
  auto mapping = std::ranges::find_if(
      mappings, [&](const Mapping &one) { return address >= one.start && address < one.end; });
  char text[64];
  if (mapping == mappings.end() || mapping->anonymous()) {
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(address));
    return text;
  }
  auto base = std::ranges::find_if(
      mappings, [&](const Mapping &one) { return one.file == mapping->file && one.offset == 0; });
  uint64_t offset = base == mappings.end() ? address - mapping->start + mapping->offset : address - base->start;
  if (mapping->name == payload_name) return name_in_object(payload.bytes(), offset);
  std::snprintf(text, sizeof text, "+0x%llx", static_cast<unsigned long long>(offset));
  return mapping->name.substr(mapping->name.rfind('/') + 1) + text;
}

// A function that calls nothing keeps no frame: the return address is on top of the stack, right after a call.
uint64_t caller_of_leaf(const Target &target, const user_regs_struct &registers) {
  constexpr unsigned char call = 0xE8;
  uint64_t address = 0;
  unsigned char before[5];
  bool found = target.try_read(registers.rsp, &address, sizeof address) &&
               target.try_read(address - sizeof before, before, sizeof before) && before[0] == call;
  return found ? address : 0;
}

} // namespace

std::string describe_signal(int signal, uint64_t address) {
  std::string text = std::string("The function was stopped by ") + sigdescr_np(signal) + " (SIG" + sigabbrev_np(signal) + ")";
  if (signal != SIGSEGV && signal != SIGBUS) return text + ".";
  char where[32];
  std::snprintf(where, sizeof where, " at address 0x%llx.", static_cast<unsigned long long>(address));
  return text + where;
}

std::vector<std::string> walk_frames(const Target &target, const Payload &payload, const user_regs_struct &registers) {
  std::vector<Mapping> mappings = parse_maps(target.read_maps());
  std::vector<std::string> frames{name_of(mappings, payload, registers.rip)};
  uint64_t leaf = caller_of_leaf(target, registers), frame = registers.rbp;
  while (frames.size() < max_frames && frame % 8 == 0) {
    uint64_t link[2]; // The caller's frame and the return address.
    if (!target.try_read(frame, link, sizeof link) || link[1] == 0) break;
    if (leaf != 0 && frames.size() == 1 && leaf != link[1]) frames.push_back(name_of(mappings, payload, leaf - 1));
    frames.push_back(name_of(mappings, payload, link[1] - 1));
    if (link[0] <= frame) break; // Frames only go up.
    frame = link[0];
  }
  return frames;
}

} // namespace gpuwhisk::inject
