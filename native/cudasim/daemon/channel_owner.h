#ifndef GPUWHISK_CUDASIM_CHANNEL_OWNER_H
#define GPUWHISK_CUDASIM_CHANNEL_OWNER_H

#include "../channel.h"
#include "descriptor.h"

namespace gpuwhisk::sim {

/** The daemon's side of a client's channel. */
class Channel {
public:
  /** Throws std::system_error. */
  Channel();
  ~Channel();
  Channel(const Channel &) = delete;
  Channel &operator=(const Channel &) = delete;

  int descriptor() const { return memory_.get(); }

  /** Takes the next entry out of the ring. False if there is none; `*broken` if the ring makes no sense. */
  bool take(gwsim_entry &entry, bool *broken);
  /** Drops what is in the ring. */
  void drop_all();
  /** Callers that wait for free space may go on. */
  void offer_space();

  void complete(uint32_t stream, uint64_t sequence);
  void record(uint32_t slot, uint64_t generation, double time_ns);
  /** Position in a stream that a caller waits for; 0: none. */
  uint64_t awaited(uint32_t stream) const;
  bool space_wanted() const;
  /** All calls answer `error` from now on; waiting callers are woken. */
  void fault(uint32_t error);

  /** Says that the ring is not looked into from now on. False: there is something in it. */
  bool fall_asleep();
  void wake_up();

private:
  void wake(uint32_t stream);

  Descriptor memory_;
  gwsim_channel *page_;
  uint64_t tail_ = 0;
};

} // namespace gpuwhisk::sim

#endif
