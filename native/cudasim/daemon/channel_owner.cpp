#include "channel_owner.h"

#include <climits>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>

namespace gpuwhisk::sim {
namespace {

void wake_all(uint32_t *word) {
  __atomic_add_fetch(word, 1, __ATOMIC_SEQ_CST);
  syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

} // namespace

Channel::Channel() : memory_(checked(memfd_create("gpuwhisk-cudasim", MFD_CLOEXEC | MFD_ALLOW_SEALING), "memfd_create")) {
  if (ftruncate(memory_.get(), sizeof(gwsim_channel)) < 0) throw_errno("ftruncate");
  // A client that made it smaller would take the daemon with it.
  if (fcntl(memory_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) throw_errno("F_ADD_SEALS");
  void *page = mmap(nullptr, sizeof(gwsim_channel), PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0);
  if (page == MAP_FAILED) throw_errno("mmap");
  page_ = static_cast<gwsim_channel *>(page);
  page_->asleep = 1;
}

Channel::~Channel() { munmap(page_, sizeof(gwsim_channel)); }

bool Channel::take(gwsim_entry &entry, bool *broken) {
  uint64_t head = __atomic_load_n(&page_->head, __ATOMIC_SEQ_CST);
  if (head == tail_) return false;
  if (head - tail_ > GWSIM_RING_ENTRIES) {
    *broken = true;
    return false;
  }
  entry = page_->ring[tail_ % GWSIM_RING_ENTRIES];
  __atomic_store_n(&page_->tail, ++tail_, __ATOMIC_SEQ_CST);
  return true;
}

void Channel::drop_all() {
  tail_ = __atomic_load_n(&page_->head, __ATOMIC_SEQ_CST);
  __atomic_store_n(&page_->tail, tail_, __ATOMIC_SEQ_CST);
  offer_space();
}

bool Channel::space_wanted() const { return __atomic_load_n(&page_->space_wanted, __ATOMIC_SEQ_CST) != 0; }

void Channel::offer_space() {
  if (__atomic_exchange_n(&page_->space_wanted, 0, __ATOMIC_SEQ_CST) != 0) wake_all(&page_->space_wakes);
}

uint64_t Channel::awaited(uint32_t stream) const {
  return __atomic_load_n(&page_->streams[stream].awaited, __ATOMIC_SEQ_CST);
}

void Channel::complete(uint32_t stream, uint64_t sequence) {
  gwsim_stream_state &state = page_->streams[stream];
  __atomic_store_n(&state.completed, sequence, __ATOMIC_SEQ_CST);
  uint64_t awaited = __atomic_load_n(&state.awaited, __ATOMIC_SEQ_CST);
  if (awaited == 0 || awaited > sequence) return;
  // Who waits for more by now has raised it, and it stays.
  __atomic_compare_exchange_n(&state.awaited, &awaited, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  wake_all(&state.wakes);
}

void Channel::record(uint32_t slot, uint64_t generation, double time_ns) {
  gwsim_event_state &state = page_->events[slot];
  __atomic_store_n(&state.time_ns, static_cast<uint64_t>(time_ns), __ATOMIC_SEQ_CST);
  __atomic_store_n(&state.generation, generation, __ATOMIC_SEQ_CST);
}

void Channel::fault(uint32_t error) {
  __atomic_store_n(&page_->faulted, error, __ATOMIC_SEQ_CST);
  for (auto &state : page_->streams)
    if (__atomic_exchange_n(&state.awaited, 0, __ATOMIC_SEQ_CST) != 0) wake_all(&state.wakes);
  drop_all();
}

bool Channel::fall_asleep() {
  __atomic_store_n(&page_->asleep, 1, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&page_->head, __ATOMIC_SEQ_CST) == tail_) return true;
  wake_up();
  return false;
}

void Channel::wake_up() { __atomic_store_n(&page_->asleep, 0, __ATOMIC_SEQ_CST); }

} // namespace gpuwhisk::sim
