#ifndef GPUWHISK_CUDASIM_PARTITION_LOAD_H
#define GPUWHISK_CUDASIM_PARTITION_LOAD_H

#include "gpu.h"
#include "node.h"
#include "stream_queue.h"

#include <list>
#include <vector>

namespace gpuwhisk::sim {

/**
 * The kernels on a partition. The clients of one MPS server run side by side; it and every other process take turns, and
 * a turn ends early where nothing is left to run in it.
 */
class PartitionLoad {
public:
  PartitionLoad(Gpu &gpu, Partition &partition, double turn_ns) : gpu_(gpu), partition_(partition), turn_ns_(turn_ns) {}

  void add(StreamQueue &stream, Context &context);
  void remove(const StreamQueue &stream);
  void forget_group(const void *group);

  /** Chooses whose turn it is and sets the rates of all kernels, if something has changed. */
  void settle(double now_ns);
  /** Counts what was used in a time in which no rate changed. */
  void account(double elapsed_ns);
  /** When the turn ends; infinity if no client waits for that. */
  double turn_end() const;
  void end_turn(double now_ns);
  bool is_empty() const { return members_.empty(); }
  /** Rates have to be computed again. */
  void touch() { changed_ = true; }

private:
  struct Member {
    StreamQueue *stream;
    Context *context;
    const void *group;
  };
  bool has_work(const void *group) const;
  void pass_turn(double now_ns);

  Gpu &gpu_;
  Partition &partition_;
  double turn_ns_;
  std::vector<Member> members_;
  std::list<const void *> groups_; // In the order of their turns; whose it is comes first.
  double turn_end_ns_ = 0;
  bool changed_ = false;
};

/** What takes turns on a device: an MPS server, or a process of its own. */
inline const void *group_of(const Context &context) {
  return context.mps != nullptr ? static_cast<const void *>(context.mps) : context.client;
}

} // namespace gpuwhisk::sim

#endif
