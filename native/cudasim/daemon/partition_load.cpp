#include "partition_load.h"

#include <algorithm>
#include <limits>

namespace gpuwhisk::sim {

void PartitionLoad::add(StreamQueue &stream, Context &context) {
  const void *group = group_of(context);
  if (std::ranges::find(groups_, group) == groups_.end()) groups_.push_back(group);
  members_.push_back({&stream, &context, group});
  changed_ = true;
}

void PartitionLoad::remove(const StreamQueue &stream) {
  std::erase_if(members_, [&](const Member &member) { return member.stream == &stream; });
  changed_ = true;
}

void PartitionLoad::forget_group(const void *group) {
  groups_.remove(group);
  std::erase_if(members_, [&](const Member &member) { return member.group == group; });
  changed_ = true;
}

bool PartitionLoad::has_work(const void *group) const {
  return std::ranges::find(members_, group, &Member::group) != members_.end();
}

void PartitionLoad::pass_turn(double now_ns) {
  for (size_t i = 0; i < groups_.size(); i++) {
    groups_.splice(groups_.end(), groups_, groups_.begin());
    if (has_work(groups_.front())) break;
  }
  turn_end_ns_ = now_ns + turn_ns_;
  changed_ = true;
}

void PartitionLoad::end_turn(double now_ns) { pass_turn(now_ns); }

double PartitionLoad::turn_end() const {
  bool others = std::ranges::any_of(members_, [&](const Member &member) { return member.group != groups_.front(); });
  return others ? turn_end_ns_ : std::numeric_limits<double>::infinity();
}

void PartitionLoad::settle(double now_ns) {
  if (!changed_) return;
  // Alone, a group has no turn to end; who comes then waits for a whole one at most.
  if (!members_.empty() && (!has_work(groups_.front()) || (turn_end_ns_ <= now_ns && turn_end() <= now_ns)))
    pass_turn(now_ns);
  std::vector<Running *> kernels;
  for (Member &member : members_) {
    if (member.group == groups_.front()) kernels.push_back(&member.stream->kernel);
    else member.stream->kernel.sms = member.stream->kernel.rate = 0;
  }
  double clock = gpu_.clock_event_reasons == 0 ? 1 : 0.5;
  share(kernels, {static_cast<double>(partition_.sm_count), gpu_.model().sm_speed * clock, partition_.bandwidth});
  for (Member &member : members_) member.stream->rate = member.stream->kernel.rate;
  changed_ = false;
}

void PartitionLoad::account(double elapsed_ns) {
  if (members_.empty()) return;
  partition_.usage.busy_ns += elapsed_ns;
  std::vector<Context *> busy;
  for (const Member &member : members_) {
    const Running &kernel = member.stream->kernel;
    if (kernel.rate <= 0) continue;
    double sm_ns = kernel.sms * elapsed_ns, bytes = kernel.rate * kernel.dram_bytes * elapsed_ns;
    partition_.usage.sm_ns += sm_ns;
    partition_.usage.dram_bytes += bytes;
    member.context->usage.sm_ns += sm_ns;
    member.context->usage.dram_bytes += bytes;
    if (std::ranges::find(busy, member.context) != busy.end()) continue;
    busy.push_back(member.context);
    member.context->usage.busy_ns += elapsed_ns;
  }
}

} // namespace gpuwhisk::sim
