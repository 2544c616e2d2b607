#include "pagemap.h"

#include "failure.h"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <sys/ioctl.h>

namespace gpuwhisk::inject {
namespace {

// As in linux/fs.h since 6.7, which older headers lack.
struct scan_argument {
  uint64_t size, flags, start, end, walk_end, regions, region_count, max_pages;
  uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
struct scan_region {
  uint64_t start, end, categories;
};
constexpr unsigned long scan_request = _IOWR('f', 16, scan_argument);
enum : uint64_t {
  page_registered = 1,
  page_written = 1 << 1,
  page_file = 1 << 2,
  page_present = 1 << 3,
  page_swapped = 1 << 4
};
enum : uint64_t { check_protected = 1 << 1 };
enum : uint64_t { entry_present = 1ULL << 63, entry_swapped = 1ULL << 62, entry_file = 1ULL << 61 };

void add(std::vector<Range> &ranges, Range range) {
  if (!ranges.empty() && ranges.back().end == range.start) ranges.back().end = range.end;
  else ranges.push_back(range);
}

template <typename Visit> void each_entry(const Target &target, Range range, Visit visit) {
  std::array<uint64_t, 1024> entries;
  for (uint64_t at = range.start; at < range.end;) {
    uint64_t count = std::min<uint64_t>(entries.size(), (range.end - at) / page_bytes);
    ssize_t got = pread(target.pagemap(), entries.data(), count * 8, static_cast<off_t>(at / page_bytes * 8));
    if (got <= 0) throw_errno("read /proc/PID/pagemap");
    for (size_t i = 0; i < static_cast<size_t>(got) / 8; i++, at += page_bytes) visit(at, entries[i]);
  }
}

// Calls `visit` with every run of pages that is there; false if CHECK says that part of the range is not protected.
template <typename Visit> bool scan(const Target &target, Range range, scan_argument argument, Visit visit) {
  static thread_local std::array<scan_region, 512> regions;
  argument.size = sizeof argument;
  argument.start = range.start;
  argument.end = range.end;
  argument.regions = reinterpret_cast<uint64_t>(regions.data());
  argument.region_count = regions.size();
  while (argument.start < range.end) {
    int count = ioctl(target.pagemap(), scan_request, &argument);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EPERM) return false;
    if (count < 0) throw_errno("PAGEMAP_SCAN");
    for (int i = 0; i < count; i++) visit(regions[static_cast<size_t>(i)]);
    argument.start = argument.walk_end;
  }
  return true;
}

scan_argument present(uint64_t flags) {
  scan_argument argument{};
  argument.flags = flags;
  argument.category_anyof_mask = page_present | page_swapped;
  argument.return_mask = page_written | page_file | page_present | page_swapped;
  return argument;
}

} // namespace

std::vector<Range> unprotected_pages(const Target &target, Range range) {
  std::vector<Range> pages;
  scan_argument argument{};
  argument.category_mask = page_written | page_registered; // For these the kernel looks at page tables only.
  argument.category_anyof_mask = page_present | page_swapped;
  argument.return_mask = page_written;
  scan(target, range, argument, [&](const scan_region &region) { add(pages, {region.start, region.end}); });
  return pages;
}

std::optional<PageRuns> scan_writes(const Target &target, Range range) {
  PageRuns runs;
  bool known = scan(target, range, present(check_protected), [&](const scan_region &region) {
    add(region.categories & page_written ? runs.written : runs.clean, {region.start, region.end});
  });
  if (!known) return std::nullopt;
  return runs;
}

std::vector<Range> present_pages(const Target &target, Range range) {
  std::vector<Range> present;
  each_entry(target, range, [&](uint64_t at, uint64_t entry) {
    if (entry & (entry_present | entry_swapped)) add(present, {at, at + page_bytes});
  });
  return present;
}

std::vector<Range> private_copies(const Target &target, Range range) {
  std::vector<Range> copies;
  if (has_pagemap_scan()) {
    scan(target, range, present(0), [&](const scan_region &region) {
      if (!(region.categories & page_file)) add(copies, {region.start, region.end});
    });
    return copies;
  }
  each_entry(target, range, [&](uint64_t at, uint64_t entry) {
    if (entry & (entry_present | entry_swapped) && !(entry & entry_file)) add(copies, {at, at + page_bytes});
  });
  return copies;
}

bool has_pagemap_scan() {
  static const bool has = [] {
    Descriptor own(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
    scan_argument argument{};
    argument.size = sizeof argument;
    return own && ioctl(own.get(), scan_request, &argument) == 0;
  }();
  return has;
}

} // namespace gpuwhisk::inject
