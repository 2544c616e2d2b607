// Which pages of a process are there, and which were written since they were protected (PAGEMAP_SCAN, Linux 6.7).
#pragma once

#include "maps.h"
#include "target.h"

#include <optional>

namespace gpuwhisk::inject {

constexpr uint64_t page_bytes = 4096;

/** A run of pages of one kind: there since the snapshot and not written, or written. */
struct PageRuns {
  std::vector<Range> clean, written;
  bool tracked = true; // Whether writes there are tracked still: a mapping may have been replaced.
};

/**
 * The pages in `range`. None if a mapping in it is not (or no longer) write-protected through userfaultfd, so that
 * nothing can be said of it.
 */
std::optional<PageRuns> scan_writes(const Target &target, Range range);

/**
 * The pages in `range` that may have been written: those that are there and not write-protected. Quicker than
 * scan_writes; mappings that are not registered with the userfaultfd are passed over.
 */
std::vector<Range> unprotected_pages(const Target &target, Range range);

/** The pages in `range` that exist, from /proc/PID/pagemap, which every kernel has. */
std::vector<Range> present_pages(const Target &target, Range range);

/** Of those, the ones that no longer are the file's: private copies. */
std::vector<Range> private_copies(const Target &target, Range range);

/** Whether this kernel has PAGEMAP_SCAN. */
bool has_pagemap_scan();

} // namespace gpuwhisk::inject
