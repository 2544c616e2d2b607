// The devices' time. What was launched is carried out at its ideal time: the daemon may look late, and then computes what
// has been meanwhile, so that its own delays never add up. All times are of the simulated devices, ns.
#ifndef GPUWHISK_CUDASIM_SIMULATION_H
#define GPUWHISK_CUDASIM_SIMULATION_H

#include "../channel.h"
#include "node.h"
#include "partition_load.h"
#include "stream_queue.h"

#include <functional>
#include <map>
#include <vector>

namespace gpuwhisk::sim {

class Simulation {
public:
  /** `on_fault` is called when a kernel that faults is over; it may remove clients. */
  Simulation(Node &node, std::function<void(Client &, Gpu &)> on_fault);

  double now() const { return now_; }

  /** Operations of a client that are not over. */
  size_t pending(const Client &client) const;
  /** False: it makes no sense, and is dropped. `stamp_ns`: when it was launched; what is past counts as now. */
  bool submit(Client &client, const gwsim_entry &entry, double stamp_ns);

  /** Goes on to `to_ns`. */
  void advance(double to_ns);

  /** Whether anything is queued or runs. */
  bool is_idle() const;
  /** When next something happens if nothing is submitted; infinity: nothing. */
  double next_event();
  /** No sooner than this is that operation of a stream over. */
  double earliest_end(const Client &client, uint32_t stream, uint64_t sequence) const;
  /** Streams of a client with something in them. */
  std::vector<uint32_t> busy_streams(const Client &client) const;

  /** What a client has queued or running is gone. */
  void drop(const Client &client);
  void drop(const Client &client, uint32_t context);
  /** An MPS server or a client that took turns is gone. */
  void forget_group(const void *group);
  /** A device runs at another clock. */
  void touch();

private:
  struct Lane {
    std::map<uint32_t, StreamQueue> streams; // Those with something in them.
    std::map<uint32_t, uint64_t> recorded;   // Generation, by event slot.
    size_t pending = 0;
    uint64_t submitted = 0;
    bool stirred = false; // Something may have become ready.
  };

  void start_ready(Client &client, Lane &lane);
  bool is_ready(const Lane &lane, const StreamQueue &queue) const;
  void start(Client &client, StreamQueue &queue);
  void finish(Client &client, Lane &lane, StreamQueue &queue);
  void settle();
  void elapse(double until_ns);
  double find_next();
  void set_copy_rates();
  double solo_ns(const Queued &operation, const Context &context) const;

  Node &node_;
  std::function<void(Client &, Gpu &)> on_fault_;
  double now_ = 0;
  std::map<Client *, Lane> lanes_;
  std::map<const Partition *, PartitionLoad> loads_;
};

} // namespace gpuwhisk::sim

#endif
