// The parts of the interception library.
#ifndef GPUWHISK_TOKENS_H
#define GPUWHISK_TOKENS_H

#include "cuda_abi.h"
#include "page.h"

#include <stdbool.h>

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define EXPORT __attribute__((visibility("default")))
#define LOAD(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)
#define STORE(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELAXED)

// symbols.c: the entry points behind the hooks.
enum hook {
#define HOOK(symbol, name, since, per_thread) HOOK_##symbol,
#include "hooks.def"
#undef HOOK
  HOOK_COUNT,
};

/** One row of hooks.def. */
struct hook_row {
  const char *symbol;
  const char *name;
  int since;
  bool per_thread;
  void *wrapper;
};
extern const struct hook_row hook_rows[HOOK_COUNT];
extern void *hook_reals[HOOK_COUNT];

/** The driver's own entry point, looked up at the first need; NULL if the driver has none. */
void *hook_resolve(enum hook hook);
static inline void *hook_real(enum hook hook) {
  void *real = LOAD(hook_reals[hook]);
  return LIKELY(real != NULL) ? real : hook_resolve(hook);
}
/** Any function of the driver, past the hooks; NULL if it has none. */
void *driver_function(const char *symbol);
/** What the program is to get instead of `real`, which is the driver's function `hook`. */
void *hook_replace(enum hook hook, void *real);

// accounts.c: the shares of this process, one for each ticket (GPU).
enum { MAX_ACCOUNTS = 8 };
enum attention {
  ATTENTION_CONNECT = 1, // not registered yet
  ATTENTION_RETRY = 2,   // goes without its server; looks for it again now and then
};
struct account {
  struct tokens_page *page;
  int process; // index in the page's memory_used; -1: not registered, nothing is charged
};
extern struct account accounts[MAX_ACCOUNTS + 1]; // the last one limits nothing: for devices without a ticket
extern int account_count; // at least 1: without a ticket there is one that limits nothing
extern unsigned accounts_attention;

/** Registers this process where that is due. Called before anything that costs time or memory of a GPU. */
void accounts_attend(void);
/** The account of the current context's device, or of `device`. */
struct account *account_of_current(void);
struct account *account_of_device(CUdevice device);

static inline struct account *account_here(void) {
  if (UNLIKELY(LOAD(accounts_attention) != 0)) accounts_attend();
  return LIKELY(account_count == 1) ? &accounts[0] : account_of_current();
}
/** Goes on without the server, which has been silent for too long, and says so. */
void account_open(struct account *account);
int64_t monotonic_ns(void);
/** One line for the operator, on standard error. */
void say(const char *text);

// connection.c
/** Asks the server at `socket_path` for the page of `ticket` and maps it over the account's. NULL, or what went wrong. */
const char *connect_account(const char *socket_path, const char *ticket, struct account *account);

// wait.c
/** Waits until `blocks` may be launched that were taken at `start` in `generation`. The driver's error if they may not. */
CUresult wait_for_tokens(struct account *account, int64_t start, int64_t blocks, uint64_t generation);

/** Takes `blocks` for a launch: one addition, and a wait only where they are not granted yet. */
static inline CUresult take_tokens(int64_t blocks) {
  struct account *account = account_here();
  struct tokens_page *page = account->page;
  uint64_t generation = LOAD(page->generation);
  int64_t start = __atomic_fetch_add(&page->taken, blocks, __ATOMIC_RELAXED);
  if (LIKELY(start + blocks <= LOAD(page->granted))) return CUDA_SUCCESS;
  return wait_for_tokens(account, start, blocks, generation);
}

// capture.c
extern int captures_active;
bool is_capturing(CUstream stream, bool per_thread);

/** Charges a launch into `stream`; one that a graph captures is charged when the graph is launched. */
static inline CUresult charge_launch(int64_t blocks, CUstream stream, bool per_thread) {
  if (UNLIKELY(LOAD(captures_active) != 0) && is_capturing(stream, per_thread)) return CUDA_SUCCESS;
  return take_tokens(blocks);
}

/** Blocks of a grid. Products of three 32-bit numbers need more than 64 bits; no real grid passes the bound. */
static inline int64_t blocks_of(unsigned x, unsigned y, unsigned z) {
  const unsigned __int128 bound = (int64_t)1 << 46;
  unsigned __int128 blocks = (unsigned __int128)x * y * z;
  return (int64_t)(blocks < bound ? blocks : bound);
}

// prices.c: blocks of instantiated graphs.
void price_graph(CUgraphExec exec, CUgraph graph);
void forget_price(CUgraphExec exec);
int64_t price_of(CUgraphExec exec);

// ledger.c: what this process holds of device memory.
enum allocation_kind { FREE_PLACE = 0, MEMORY, HANDLE, ARRAY, MIPMAPPED_ARRAY, CONTEXT };
struct allocation {
  uint64_t key; // pointer or handle
  int64_t bytes;
  CUcontext context;
  uint64_t number; // grows with every allocation
  uint32_t kind;
  uint32_t account;
};
void ledger_reset(void);
/** False if the ledger is full. */
bool ledger_add(const struct allocation *allocation);
/** Takes an allocation out; false if it is not there. */
bool ledger_remove(enum allocation_kind kind, uint64_t key, struct allocation *removed);
/** Takes out any one allocation after `mark` (contexts are none), or any of `context`. */
bool ledger_remove_after(uint64_t mark, struct allocation *removed);
bool ledger_remove_of(CUcontext context, struct allocation *removed);
uint64_t ledger_mark(void);
/** Bytes of all allocations that are charged to an account. */
int64_t ledger_bytes(uint32_t account);

// charges.c
/** Counts `bytes` against the cap; false if they pass it. */
bool charge_memory(struct account *account, int64_t bytes);
void discharge_memory(struct account *account, int64_t bytes);
int64_t memory_used(const struct account *account);

#endif
