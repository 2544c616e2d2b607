// The mappings of a process (/proc/PID/maps) and how two lists of them differ.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpuwhisk::inject {

struct Range {
  uint64_t start, end;
  bool operator==(const Range &) const = default;
};

struct Mapping : Range {
  int protection; // PROT_*
  bool shared;
  uint64_t offset;
  std::string file; // "device inode"; empty: anonymous.
  std::string name; // A path, or a name of the kernel ("[heap]").
  bool anonymous() const { return file.empty(); }
  /** Driver mappings and the kernel's own pages, which no snapshot holds. */
  bool foreign() const;
  bool operator==(const Mapping &) const = default;
};

std::vector<Mapping> parse_maps(std::string_view text);

/** Neighbours that differ in nothing become one, so that lists compare whatever was split in between. */
std::vector<Mapping> coalesce(std::vector<Mapping> mappings);

/** Sorted, disjoint ranges: those of `from` without those of `without`. */
std::vector<Range> subtract(const std::vector<Range> &from, const std::vector<Range> &without);

} // namespace gpuwhisk::inject
