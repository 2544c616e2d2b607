#include "maps.h"

#include <algorithm>
#include <charconv>
#include <sys/mman.h>

namespace gpuwhisk::inject {
namespace {

uint64_t hexadecimal(std::string_view text, size_t &at) {
  uint64_t value = 0;
  at = static_cast<size_t>(std::from_chars(text.data() + at, text.data() + text.size(), value, 16).ptr - text.data());
  return value;
}

Mapping parse_line(std::string_view line) {
  Mapping mapping{};
  size_t at = 0;
  mapping.start = hexadecimal(line, at);
  mapping.end = hexadecimal(line, ++at);
  std::string_view permissions = line.substr(++at, 4);
  mapping.protection = (permissions[0] == 'r' ? PROT_READ : 0) | (permissions[1] == 'w' ? PROT_WRITE : 0) |
                       (permissions[2] == 'x' ? PROT_EXEC : 0);
  mapping.shared = permissions[3] == 's';
  mapping.offset = hexadecimal(line, at += 5);
  at++;
  std::string_view device = line.substr(at, line.find(' ', at) - at);
  at += device.size() + 1;
  std::string_view inode = line.substr(at, line.find(' ', at) - at);
  size_t name = line.find_first_not_of(' ', at + inode.size());
  if (name != std::string_view::npos) mapping.name = line.substr(name);
  if (inode != "0") mapping.file = std::string(device) + " " + std::string(inode);
  return mapping;
}

} // namespace

bool Mapping::foreign() const {
  return name.starts_with("/dev/") || name.starts_with("[v") || name.starts_with("anon_inode:");
}

std::vector<Mapping> parse_maps(std::string_view text) {
  std::vector<Mapping> mappings;
  mappings.reserve(64);
  while (!text.empty()) {
    size_t length = text.find('\n');
    std::string_view line = text.substr(0, length);
    if (!line.empty()) mappings.push_back(parse_line(line));
    if (length == std::string_view::npos) break;
    text.remove_prefix(length + 1);
  }
  return mappings;
}

std::vector<Mapping> coalesce(std::vector<Mapping> mappings) {
  std::vector<Mapping> merged;
  merged.reserve(mappings.size());
  for (Mapping &next : mappings) {
    if (!merged.empty()) {
      Mapping &last = merged.back();
      bool follows = last.end == next.start && last.protection == next.protection && last.shared == next.shared &&
                     last.file == next.file && last.name == next.name &&
                     (last.anonymous() || last.offset + (last.end - last.start) == next.offset);
      if (follows) {
        last.end = next.end;
        continue;
      }
    }
    merged.push_back(std::move(next));
  }
  return merged;
}

std::vector<Range> subtract(const std::vector<Range> &from, const std::vector<Range> &without) {
  std::vector<Range> rest;
  auto hole = without.begin();
  for (Range range : from) {
    while (hole != without.end() && hole->end <= range.start) ++hole;
    for (auto next = hole; next != without.end() && next->start < range.end; ++next) {
      if (next->start > range.start) rest.push_back({range.start, next->start});
      range.start = std::max(range.start, next->end);
      if (range.start >= range.end) break;
    }
    if (range.start < range.end) rest.push_back(range);
  }
  return rest;
}

} // namespace gpuwhisk::inject
