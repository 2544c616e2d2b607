// The memory of a process as it was at the safe point, and the way back to it.
//
// Where the kernel can (userfaultfd in asynchronous write-protect mode, PAGEMAP_SCAN: Linux 6.7), every page that a
// function can write is write-protected once; a write costs the function one fault, and finding what was written
// costs a walk over page tables. Elsewhere the pages are compared with the copy.
//
// Functions write much the same pages of their interpreter. What one wrote is therefore left open for a while, and
// put back after every function whether it was written or not: that is cheaper than a fault and a protection each. And
// since a protected page cannot be written without a page fault of the process, the page tables are read only if there
// was one: the kernel counts them.
#pragma once

#include "content.h"
#include "pagemap.h"
#include "remote.h"
#include "template.h"

#include <memory>

namespace gpuwhisk::inject {

class Snapshot {
public:
  /**
   * Takes the snapshot. Every thread of the process is stopped. `userfault`: a userfaultfd that the process opened
   * (with UFFD_FEATURE_WP_ASYNC), or none. `file`: for the content. Driver mappings and shared ones are left out.
   * `from`: the template that the process is a copy of, whose unchanged pages are content, too; or null. It outlives this.
   */
  Snapshot(const Target &target, Remote &remote, Descriptor userfault, Descriptor file, const Template *from);

  /** Whether writes are tracked; otherwise pages are compared. */
  bool tracks_writes() const { return bool(userfault_); }
  /** The memory that comes from a template's file. */
  std::vector<Range> from_template() const { return {from_template_.begin(), from_template_.end()}; }
  uint64_t stored_bytes() const { return content_->taken(); }

  // The way back, in three steps, with every thread stopped:
  /**
   * Adds the system calls that put the mappings back, and the copies that put the pages back. Throws "unrestorable"
   * where nothing can. `mapped`: whether mappings are compared, as they must be if a call ran that changes some.
   */
  void plan(std::vector<gw_call> &calls, bool mapped);
  /** After those calls: writes back what the process itself may not write, and protects the pages again. */
  void write_back();
  /** Throws "unrestorable" if mappings, constants or code differ from the snapshot, or a page is not as it was. */
  void verify();

private:
  struct Stored : Range {
    const std::byte *content; // In content_, or the template.
    uint64_t remote;          // The same in the process.
    bool writable;            // By the process itself.
  };
  void list_mappings();
  std::vector<Mapping> current_mappings(const std::string &text) const;
  void store(Range range, bool writable);
  void store_template();
  void list_stored();
  void protect(Range range) const;
  void protect_present(Range range) const;
  void enlist(Range range) const;
  PageRuns runs(Range range) const;
  PageRuns compare(Range range) const;
  void plan_mappings(std::vector<gw_call> &calls);
  void plan_pages(std::vector<gw_call> &calls);
  void plan_copies(std::vector<gw_call> &calls);
  void plan_written(std::vector<gw_call> &calls);
  void empty(Range range, std::vector<gw_call> &calls);
  void adopt(Range range);
  void verify_all() const;

  const Target &target_;
  Remote &remote_;
  Descriptor userfault_;
  const Template *from_;
  uint64_t heap_end_ = 0;
  std::string maps_text_;
  std::vector<Mapping> mappings_;
  std::vector<Range> tracked_; // May be written: neighbours are one range.
  std::vector<Range> kernels_; // Written by the kernel, of its own accord.
  std::vector<Range> watched_; // Code and constants: never written.
  std::vector<Stored> stored_;
  std::unique_ptr<Content> content_;
  std::vector<Range> stored_ranges_;
  std::vector<Pages> from_template_; // What was mapped from its file.
  std::vector<Range> to_write_, to_enlist_, to_protect_;
  std::vector<iovec> copies_from_, copies_to_; // What the process may not write itself.
  size_t pages_ = 0;             // To be put back.
  std::vector<Range> open_;     // Written back, and not protected.
  Counts counts_;               // When it was last known which pages are not protected: open_, and no other.
  size_t adopted_bytes_ = 0;
  unsigned rounds_ = 0;
  bool compare_mappings_ = true;
};

} // namespace gpuwhisk::inject
