// What a client of the kernel tokens shares with the server: one page of a memfd for each GPU share ("ticket"), and the
// two messages by which it is handed over. All processes of a ticket share the page, and so its tokens and its memory.
//
// Tokens are counted up, never down. A launch of n blocks adds n to `taken` once and may go when `granted` covers what
// was taken before it and n itself, or a whole period's budget if n is more: a kernel larger than the budget goes into
// debt, and those after it wait until the debt is granted. The position that the addition returned is the place in the
// queue, so that no waiter is overtaken.
//
//   taken before   + n                   granted <- server, each period: min(granted, taken) + budget
//   |--------------|=====|-----> waits   (what was not taken in a period is lost)
#ifndef GPUWHISK_TOKENS_PAGE_H
#define GPUWHISK_TOKENS_PAGE_H

#include <assert.h>
#include <stdint.h>

enum {
  TOKENS_VERSION = 1,
  TOKENS_PAGE_BYTES = 4096,
  /** Processes that may share a ticket. */
  TOKENS_PROCESSES = 32,
  TOKENS_TICKET_BYTES = 512,
};

static const uint32_t TOKENS_MAGIC = 0x67777431; // "gwt1"
/** More than is ever taken: no limit. */
static const int64_t TOKENS_UNLIMITED = INT64_MAX / 2;
/** Silence of the server after which a waiting client goes on without it. */
static const int64_t TOKENS_SILENCE_NS = 1000000000;

/** Fields are read and written with __atomic builtins only; each has one writer, except where it says otherwise. */
struct tokens_page {
  // Read at every launch; the server's.
  int64_t granted; // also written by a client that finds the server gone: TOKENS_UNLIMITED
  int64_t budget;  // of this period
  uint64_t generation;
  uint32_t magic;
  uint32_t ended; // the client was ended: nothing is launched or allocated any more
  int64_t memory_cap;
  int64_t context_bytes; // charged for every context
  uint8_t device[16];    // the GPU's UUID

  // Clients'.
  int64_t taken __attribute__((aligned(64)));

  uint32_t tick __attribute__((aligned(64))); // futex
  uint32_t waiting;                           // set by clients that wait, cleared by the server as it wakes them
  int64_t tick_ns;                            // CLOCK_MONOTONIC of the tick; the server's
  uint32_t waits;                             // clients': how many launches had to wait
  uint32_t opened;                            // clients': how often they went on without the server
  int64_t due_ns;                             // CLOCK_MONOTONIC at which the next tick is due; the server's
  uint32_t may_spin; // set by the server at a tick where one of those that wait may spin for the next; taken by that one
  uint32_t spins;    // clients': how often one did

  // Launch cycles; clients'.
  uint64_t cycles __attribute__((aligned(64))); // ended so far
  int64_t cycle_ns;                             // the last one's length
  int64_t running_since_ns;                     // 0: none runs
  uint32_t cycle_batch;
  uint32_t running_batch;

  /** Device memory of every process, bytes; the process's, cleared by the server when it is gone. */
  int64_t memory_used[TOKENS_PROCESSES] __attribute__((aligned(64)));

  uint8_t rest[TOKENS_PAGE_BYTES - 256 - 8 * TOKENS_PROCESSES];
};

static_assert(sizeof(struct tokens_page) == TOKENS_PAGE_BYTES, "one page");

/** Client to server, the only message. */
struct tokens_hello {
  uint32_t magic;
  uint32_t version;
  char ticket[TOKENS_TICKET_BYTES]; // ends with a zero
};

enum tokens_status {
  TOKENS_WELCOME = 0, // the page's descriptor comes with it
  TOKENS_BAD_TICKET = 1,
  TOKENS_FULL = 2,
};

/** Server to client, the answer. */
struct tokens_welcome {
  uint32_t magic;
  uint32_t version;
  uint32_t status;
  uint32_t process; // index in memory_used
};

#endif
