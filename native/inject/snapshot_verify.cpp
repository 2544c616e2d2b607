// Whether the memory of a process is as it was at the safe point.
#include "failure.h"
#include "snapshot.h"

namespace gpuwhisk::inject {

void Snapshot::verify() {
  Counts now = target_.counts();
  if (compare_mappings_) {
    verify_all();
  } else if (now.faults != counts_.faults) {
    std::vector<Range> written = unprotected_pages(target_, {tracked_.front().start, tracked_.back().end});
    if (!subtract(written, open_).empty()) throw Failure("unrestorable", "A page of the pre-warmer is not as it was.");
  }
  if (now.mapped_bytes != counts_.mapped_bytes)
    throw Failure("unrestorable", "The mappings of the pre-warmer differ from those before.");
  counts_ = now;
}

void Snapshot::verify_all() const {
  std::string now = target_.read_maps();
  if (now != maps_text_ && current_mappings(now) != mappings_)
    throw Failure("unrestorable", "The mappings of the pre-warmer differ from those before.");
  for (Range range : watched_)
    if (!private_copies(target_, range).empty())
      throw Failure("unrestorable", "The function wrote over code or constants of the pre-warmer.");
  for (Range range : tracked_) {
    PageRuns found = runs(range);
    if (!found.written.empty()) throw Failure("unrestorable", "A page of the pre-warmer is not as it was.");
  }
}

} // namespace gpuwhisk::inject
