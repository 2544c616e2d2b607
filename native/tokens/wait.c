// Waiting for tokens: asleep until the tick, or, where the server allows it, until shortly before and then awake. To wake
// an idle processor can take longer than all the rest of a waiting launch.
#define _GNU_SOURCE
#include "tokens.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
  SLEEP_NS = 100000000,
  /** Of a period of 5 ms, 3 %. */
  SPIN_NS = 150000,
  MAX_LEAD_NS = 200000,
  /** Steps in which the lead is learned. Their ratio is that of wakes before and after the tick: eight to one. */
  LATE_STEP_NS = 16000,
  EARLY_STEP_NS = 2000,
};

/** How long before the tick is due a sleep is to end so that it does end before it: timers and processors wake late. */
static int64_t lead_ns = MAX_LEAD_NS / 2;

/** Until the tick changes, `limit_ns` have passed, or a signal comes. */
static void sleep_on(struct tokens_page *page, uint32_t tick, int64_t limit_ns) {
  const struct timespec limit = {.tv_nsec = limit_ns < SLEEP_NS ? limit_ns : SLEEP_NS};
  // Said before the kernel compares the tick: the server changes the tick before it looks for threads to wake.
  __atomic_store_n(&page->waiting, 1, __ATOMIC_SEQ_CST);
  syscall(SYS_futex, &page->tick, FUTEX_WAIT, tick, &limit, NULL, 0);
}

static void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static bool has_come(const struct tokens_page *page, uint32_t tick) {
  return __atomic_load_n(&page->tick, __ATOMIC_ACQUIRE) != tick;
}

static void sleep_until_due(struct tokens_page *page, uint32_t tick) {
  int64_t lead = LOAD(lead_ns);
  int64_t sleep_ns = LOAD(page->due_ns) - lead - monotonic_ns();
  if (sleep_ns <= 0) return;
  sleep_on(page, tick, sleep_ns);
  lead += has_come(page, tick) ? LATE_STEP_NS : -EARLY_STEP_NS;
  if (lead >= 0 && lead <= MAX_LEAD_NS) STORE(lead_ns, lead);
}

/** Returns whether the tick came. */
static bool spin_on(struct tokens_page *page, uint32_t tick) {
  int64_t end_ns = monotonic_ns() + SPIN_NS;
  while (!has_come(page, tick)) {
    if (monotonic_ns() > end_ns) return false;
    relax();
  }
  return true;
}

/** For one tick, which is expected to be `enough`, or a tenth of a second where none comes. */
static void wait_for_tick(struct tokens_page *page, uint32_t tick, bool enough) {
  // One of all that wait; the others sleep.
  if (enough && __atomic_exchange_n(&page->may_spin, 0, __ATOMIC_RELAXED) != 0) {
    __atomic_fetch_add(&page->spins, 1, __ATOMIC_RELAXED);
    sleep_until_due(page, tick);
    if (spin_on(page, tick)) return;
  }
  sleep_on(page, tick, SLEEP_NS);
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
    int64_t missing = needed - __atomic_load_n(&page->granted, __ATOMIC_ACQUIRE);
    if (missing <= 0) return CUDA_SUCCESS;
    if (monotonic_ns() - LOAD(page->tick_ns) > TOKENS_SILENCE_NS) {
      account_open(account);
      continue;
    }
    if (!has_waited) __atomic_fetch_add(&page->waits, 1, __ATOMIC_RELAXED);
    has_waited = true;
    wait_for_tick(page, tick, missing <= budget);
  }
}
