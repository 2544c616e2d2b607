// Marks of launch cycles: a runtime says when an invocation (or a training step) begins and ends.
#include "tokens.h"

/** A cycle over `batch` requests begins now; one that runs is forgotten. */
EXPORT void gpuwhisk_tokens_cycle_begin(uint32_t batch) {
  int64_t now = monotonic_ns();
  account_here();
  for (int i = 0; i < account_count; i += 1) {
    STORE(accounts[i].page->running_batch, batch);
    __atomic_store_n(&accounts[i].page->running_since_ns, now, __ATOMIC_RELEASE);
  }
}

/** The cycle that runs ends now; without one nothing happens. */
EXPORT void gpuwhisk_tokens_cycle_end(void) {
  int64_t now = monotonic_ns();
  for (int i = 0; i < account_count; i += 1) {
    struct tokens_page *page = accounts[i].page;
    int64_t since = LOAD(page->running_since_ns);
    if (since == 0) continue;
    STORE(page->cycle_ns, now - since);
    STORE(page->cycle_batch, LOAD(page->running_batch));
    STORE(page->running_since_ns, 0);
    __atomic_fetch_add(&page->cycles, 1, __ATOMIC_RELEASE);
  }
}

/** CLOCK_MONOTONIC of the last period's begin on the only, or first, GPU; 0 without a server. For measurements. */
EXPORT int64_t gpuwhisk_tokens_tick_ns(void) { return LOAD(accounts[0].page->tick_ns); }
