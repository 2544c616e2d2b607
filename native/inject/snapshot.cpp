#include "snapshot.h"

#include "failure.h"
#include "tracee.h"

#include "../restorer/places.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

namespace gpuwhisk::inject {
namespace {

std::vector<Range> ranges_of(const std::vector<Mapping> &mappings) { return {mappings.begin(), mappings.end()}; }

void add_range(std::vector<Range> &ranges, Range range) {
  if (!ranges.empty() && ranges.back().end == range.start) ranges.back().end = range.end;
  else ranges.push_back(range);
}

gw_call make_call(int64_t number, std::initializer_list<uint64_t> arguments) {
  gw_call call{};
  call.number = number;
  std::copy(arguments.begin(), arguments.end(), call.arguments);
  return call;
}

constexpr uint64_t block_bytes = 2 << 20; // What one page table maps.
constexpr size_t max_open_pages = 1024;
constexpr size_t max_adopted_bytes = 128 * page_bytes;
constexpr unsigned rounds_until_closed = 64; // Then the pages that functions write are learned again.

bool overlaps(const Range &one, const Range &other) { return one.start < other.end && other.start < one.end; }

} // namespace

Snapshot::Snapshot(const Target &target, Remote &remote, Descriptor userfault, Descriptor file,
                   const Template *from)
    : target_(target), remote_(remote), userfault_(std::move(userfault)), from_(from) {
  if (!has_pagemap_scan()) userfault_.reset();
  heap_end_ = static_cast<uint64_t>(remote_.call("brk", SYS_brk, {0}));
  for (int thread : target_.threads()) {
    auto [address, length] = kernel_area(thread);
    kernels_.push_back({address, address + length});
  }
  list_mappings();
  std::vector<std::pair<Range, bool>> kept; // And whether the process may write there.
  size_t bytes = max_adopted_bytes;
  for (const Mapping &mapping : mappings_) {
    if (mapping.foreign() || mapping.shared) continue;
    bool written = mapping.protection & PROT_WRITE || mapping.anonymous() || !private_copies(target_, mapping).empty();
    add_range(written ? tracked_ : watched_, mapping);
    if (!written) continue;
    if (from_ && mapping.anonymous()) {
      for (Range range : private_copies(target_, mapping)) {
        kept.emplace_back(range, mapping.protection & PROT_WRITE);
        bytes += range.end - range.start;
      }
      continue;
    }
    // What a file-backed page holds before it is first touched is in the file, so that all of it is kept.
    for (Range range : mapping.anonymous() ? present_pages(target_, mapping) : std::vector<Range>{mapping}) {
      kept.emplace_back(range, mapping.protection & PROT_WRITE);
      bytes += range.end - range.start;
    }
  }
  content_ = std::make_unique<Content>(std::move(file), bytes, remote_);
  list_mappings(); // With the content's.
  for (const auto &[range, writable] : kept) store(range, writable);
  if (from_) store_template();
  for (Range range : tracked_) {
    enlist(range);
    protect_present(range);
  }
  counts_ = target_.counts();
}

void Snapshot::list_mappings() {
  maps_text_ = target_.read_maps();
  mappings_ = parse_maps(maps_text_);
  if (from_) from_template_ = from_->reveal(mappings_, heap_end_);
  mappings_ = coalesce(std::move(mappings_));
}

std::vector<Mapping> Snapshot::current_mappings(const std::string &text) const {
  std::vector<Mapping> now = parse_maps(text);
  if (from_) from_->reveal(now, heap_end_);
  return coalesce(std::move(now));
}

void Snapshot::store(Range range, bool writable) {
  size_t offset = content_->take(range.end - range.start);
  target_.read(range.start, content_->at(offset), range.end - range.start);
  stored_.push_back({range, content_->at(offset), content_->remote_at(offset), writable});
  add_range(stored_ranges_, range);
}

// What the process has not written since it became a copy is in the template's file, for all copies.
void Snapshot::store_template() {
  const std::vector<Range> own = stored_ranges_;
  for (const Pages &pages : from_template_) {
    auto mapping = std::ranges::upper_bound(mappings_, pages.start, {}, &Mapping::start) - 1;
    for (Range range : subtract({pages}, own)) {
      uint64_t offset = pages.offset + (range.start - pages.start);
      stored_.push_back({range, from_->at(offset), GW_TEMPLATE_PLACE + offset, (mapping->protection & PROT_WRITE) != 0});
    }
  }
  std::ranges::sort(stored_, {}, &Stored::start);
  list_stored();
}

void Snapshot::list_stored() {
  stored_ranges_.clear();
  for (const Stored &stored : stored_) add_range(stored_ranges_, stored);
}

void Snapshot::enlist(Range range) const {
  if (!userfault_) return;
  uffdio_register argument{};
  argument.range = {range.start, range.end - range.start};
  argument.mode = UFFDIO_REGISTER_MODE_WP;
  if (ioctl(userfault_.get(), UFFDIO_REGISTER, &argument) < 0) throw_errno("UFFDIO_REGISTER");
}

void Snapshot::protect(Range range) const {
  if (!userfault_) return;
  uffdio_writeprotect argument{};
  argument.range = {range.start, range.end - range.start};
  argument.mode = UFFDIO_WRITEPROTECT_MODE_WP;
  while (ioctl(userfault_.get(), UFFDIO_WRITEPROTECT, &argument) < 0)
    if (errno != EINTR && errno != EAGAIN) throw_errno("UFFDIO_WRITEPROTECT");
}

// Only blocks with something in them: an entry of a page table for each absent page would have to be looked at every
// time. A page that comes to be elsewhere is unprotected, and found so.
void Snapshot::protect_present(Range range) const {
  std::vector<Range> blocks;
  auto stored = std::ranges::upper_bound(stored_ranges_, range.start, {}, &Range::end);
  for (; stored != stored_ranges_.end() && stored->start < range.end; ++stored) {
    uint64_t start = std::max(range.start, stored->start / block_bytes * block_bytes);
    uint64_t end = std::min(range.end, (stored->end + block_bytes - 1) / block_bytes * block_bytes);
    if (!blocks.empty() && blocks.back().end >= start) blocks.back().end = std::max(blocks.back().end, end);
    else blocks.push_back({start, end});
  }
  for (Range block : blocks) protect(block);
}

PageRuns Snapshot::runs(Range range) const {
  if (!userfault_) return compare(range);
  if (std::optional<PageRuns> known = scan_writes(target_, range)) return *known;
  return {{}, present_pages(target_, range), false}; // Replaced by an unprotected mapping: all of it counts as written.
}

PageRuns Snapshot::compare(Range range) const {
  PageRuns found;
  std::vector<std::byte> now;
  for (const Stored &stored : stored_) {
    if (!overlaps(stored, range)) continue;
    now.resize(stored.end - stored.start);
    if (!target_.try_read(stored.start, now.data(), now.size())) continue; // Vanished: written back as a whole.
    for (const Range &own : kernels_) {
      if (own.start < stored.start || own.end > stored.end) continue;
      size_t at = own.start - stored.start;
      std::memcpy(now.data() + at, stored.content + at, own.end - own.start);
    }
    for (uint64_t at = 0; at < now.size(); at += page_bytes) {
      bool same = std::memcmp(now.data() + at, stored.content + at, page_bytes) == 0;
      add_range(same ? found.clean : found.written, {stored.start + at, stored.start + at + page_bytes});
    }
  }
  for (Range extra : subtract(present_pages(target_, range), stored_ranges_)) found.written.push_back(extra);
  std::ranges::sort(found.written, {}, &Range::start);
  return found;
}

void Snapshot::plan(std::vector<gw_call> &calls, bool mapped) {
  to_write_.clear();
  to_enlist_.clear();
  to_protect_.clear();
  Counts now = target_.counts();
  // The stack grows without a call.
  compare_mappings_ = mapped || !tracks_writes() || now.mapped_bytes != counts_.mapped_bytes;
  if (compare_mappings_) {
    plan_mappings(calls);
    plan_pages(calls);
  } else if (now.faults != counts_.faults) {
    plan_written(calls);
  } else {
    to_write_ = open_;
  }
  counts_.faults = now.faults;
  plan_copies(calls);
}

// A process copies from the content itself, where it may: several times faster than from without. Not where pages are
// compared afterwards: the kernel writes into it (rseq) whenever it has been running.
void Snapshot::plan_copies(std::vector<gw_call> &calls) {
  copies_from_.clear();
  copies_to_.clear();
  pages_ = 0;
  for (Range range : to_write_) {
    // With pages in it already, a new mapping would not become one with its neighbour when it is enlisted.
    bool anew = std::ranges::any_of(to_enlist_, [&](const Range &gone) { return overlaps(gone, range); });
    auto stored = std::ranges::upper_bound(stored_, range.start, {}, &Stored::start) - 1;
    for (; stored != stored_.end() && stored->start < range.end; ++stored) {
      uint64_t start = std::max(range.start, stored->start), length = std::min(range.end, stored->end) - start;
      uint64_t into = start - stored->start;
      pages_ += length / page_bytes;
      if (stored->writable && !anew && tracks_writes()) {
        calls.push_back(make_call(GW_COPY, {start, stored->remote + into, length}));
      } else {
        copies_from_.push_back({const_cast<std::byte *>(stored->content + into), length});
        copies_to_.push_back({reinterpret_cast<void *>(start), length});
      }
    }
  }
}

void Snapshot::plan_written(std::vector<gw_call> &calls) {
  std::vector<Range> written = unprotected_pages(target_, {tracked_.front().start, tracked_.back().end});
  std::vector<Range> unknown = subtract(written, stored_ranges_);
  to_write_ = subtract(written, unknown);
  for (Range range : unknown) {
    if (adopted_bytes_ + (range.end - range.start) > max_adopted_bytes) {
      empty(range, calls);
    } else {
      adopt(range);
      to_write_.push_back(range);
    }
  }
  std::ranges::sort(to_write_, {}, &Range::start);
}

// Pages that were not there at the snapshot read as zeros again.
void Snapshot::empty(Range range, std::vector<gw_call> &calls) {
  calls.push_back(make_call(SYS_madvise, {range.start, range.end - range.start, MADV_DONTNEED}));
}

// The snapshot has zeros there from now on: cheaper than giving the page back each time.
void Snapshot::adopt(Range range) {
  size_t offset = content_->take(range.end - range.start);
  adopted_bytes_ += range.end - range.start;
  auto by_start = [](const Range &one, uint64_t start) { return one.start < start; };
  stored_.insert(std::lower_bound(stored_.begin(), stored_.end(), range.start, by_start),
                 {range, content_->at(offset), content_->remote_at(offset), true});
  list_stored();
}

void Snapshot::plan_mappings(std::vector<gw_call> &calls) {
  std::vector<Mapping> now = current_mappings(target_.read_maps());
  calls.push_back(make_call(SYS_brk, {heap_end_}));
  if (now == mappings_) return;
  std::vector<Range> extras; // The mappings of a library lie side by side: one call.
  for (Range extra : subtract(ranges_of(now), ranges_of(mappings_))) add_range(extras, extra);
  for (Range extra : extras)
    calls.push_back(make_call(SYS_munmap, {extra.start, extra.end - extra.start}));
  for (Range gone : subtract(ranges_of(mappings_), ranges_of(now))) {
    auto was = std::ranges::find_if(mappings_, [&](const Mapping &mapping) { return overlaps(mapping, gone); });
    if (!was->anonymous() || was->shared || was->foreign())
      throw Failure("unrestorable", "The function unmapped " + was->name + ".");
    to_enlist_.push_back(gone);
    to_protect_.push_back(gone);
    if (was->name == "[heap]") continue; // brk brings it back.
    constexpr uint64_t flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
    calls.push_back(make_call(SYS_mmap, {gone.start, gone.end - gone.start, static_cast<uint64_t>(was->protection),
                                         flags, ~0ULL, 0}));
  }
  auto was = mappings_.begin();
  for (const Mapping &mapping : now) {
    while (was != mappings_.end() && was->end <= mapping.start) ++was;
    for (auto old = was; old != mappings_.end() && old->start < mapping.end; ++old) {
      bool same_file = old->file == mapping.file && old->shared == mapping.shared &&
                       (old->anonymous() || old->offset - old->start == mapping.offset - mapping.start);
      if (!same_file) throw Failure("unrestorable", "The function mapped something over " + old->name + ".");
      if (old->protection == mapping.protection) continue;
      uint64_t start = std::max(old->start, mapping.start), end = std::min(old->end, mapping.end);
      calls.push_back(make_call(SYS_mprotect, {start, end - start, static_cast<uint64_t>(old->protection)}));
    }
  }
}

void Snapshot::plan_pages(std::vector<gw_call> &calls) {
  for (Range range : tracked_) {
    PageRuns found = runs(range);
    if (userfault_ && !found.tracked) {
      to_enlist_.push_back(range);
      to_protect_.push_back(range);
    }
    auto first = std::ranges::lower_bound(stored_ranges_, range.start, {}, &Range::start);
    auto last = std::ranges::lower_bound(stored_ranges_, range.end, {}, &Range::start);
    for (Range changed : subtract({first, last}, found.clean)) add_range(to_write_, changed);
    for (Range extra : subtract(found.written, stored_ranges_)) empty(extra, calls);
  }
  if (tracks_writes()) return;
  for (Range own : kernels_) { // No comparison tells whether a function wrote there.
    if (own.start == own.end) continue;
    to_write_.push_back({own.start & ~(page_bytes - 1), (own.end + page_bytes - 1) & ~(page_bytes - 1)});
  }
}

void Snapshot::write_back() {
  for (Range range : to_enlist_) enlist(range);
  target_.write_all(copies_from_, copies_to_);
  open_.clear();
  bool leave_open = !compare_mappings_ && pages_ <= max_open_pages && ++rounds_ % rounds_until_closed != 0;
  if (leave_open) open_ = to_write_;
  else to_protect_.insert(to_protect_.end(), to_write_.begin(), to_write_.end());
  for (Range range : to_protect_) protect(range);
}

} // namespace gpuwhisk::inject
