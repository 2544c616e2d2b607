// Waiting for tokens.
#define _GNU_SOURCE
#include "tokens.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/** For one tick, or a tenth of a second where none comes. */
static void wait_for_tick(struct tokens_page *page, uint32_t tick) {
  const struct timespec limit = {.tv_nsec = 100000000};
  // Said before the kernel compares the tick: the server changes the tick before it looks whom to wake.
  __atomic_store_n(&page->waiting, 1, __ATOMIC_SEQ_CST);
  syscall(SYS_futex, &page->tick, FUTEX_WAIT, tick, &limit, NULL, 0);
}

CUresult wait_for_tokens(struct account *account, int64_t start, int64_t blocks, uint64_t generation) {
  struct tokens_page *page = account->page;
  bool has_waited = false;
  for (;;) {
    if (LOAD(page->ended) != 0) return CUDA_ERROR_CLIENT_TERMINATED;
    uint32_t tick = __atomic_load_n(&page->tick, __ATOMIC_ACQUIRE);
    uint64_t present = LOAD(page->generation);
    if (present != generation) { // a new server's page, which knows nothing of the place in the queue
      generation = present;
      start = __atomic_fetch_add(&page->taken, blocks, __ATOMIC_RELAXED);
    }
    int64_t budget = LOAD(page->budget);
    int64_t needed = start + (blocks < budget ? blocks : budget);
    if (needed <= __atomic_load_n(&page->granted, __ATOMIC_ACQUIRE)) return CUDA_SUCCESS;
    if (monotonic_ns() - LOAD(page->tick_ns) > TOKENS_SILENCE_NS) {
      account_open(account);
      continue;
    }
    if (!has_waited) __atomic_fetch_add(&page->waits, 1, __ATOMIC_RELAXED);
    has_waited = true;
    wait_for_tick(page, tick);
  }
}
